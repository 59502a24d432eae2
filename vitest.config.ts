import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/shippers/**', 'test/clickhouse/**'], // need more than npm ci brings: npm run test:full
    pool: 'forks', // a store's native library wants a process of its own
    maxWorkers: 3, // most tests wait for processes, sockets or the disk
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
