import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'], // minutes; vitest.faults.config.ts has them
    pool: 'forks', // a store's native library wants a process of its own
    maxWorkers: 3, // most tests wait for processes, sockets or the disk
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } }, // a busy machine takes its time
  },
});
