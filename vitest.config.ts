import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/shippers/**', 'test/browser/**'], // need Debian packages: npm run test:full, npm run test:browser
    pool: 'forks', // a store's native library wants a process of its own
    maxWorkers: 3, // most tests wait for processes, sockets or the disk
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
