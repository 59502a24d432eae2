import { defineConfig } from 'vitest/config';

// Programs that nobody here wrote, sending real bytes. Part of `npm run test:full`.
export default defineConfig({
  test: {
    include: ['test/shippers/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
