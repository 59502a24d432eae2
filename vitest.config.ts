import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks', // a store's native library wants a process of its own
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
