import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Debian packages, minutes or more than npm ci brings: npm run test:full has them.
    exclude: ['test/shippers/**', 'test/browser/**', 'test/faults/**', 'test/clickhouse/**'],
    pool: 'forks', // a store's native library wants a process of its own
    maxWorkers: 3, // most tests wait for processes, sockets or the disk
    expect: { poll: { timeout: 20_000 } }, // what happens in a moment takes longer on a busy machine
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
