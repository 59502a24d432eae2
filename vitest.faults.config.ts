// The tests that kill the program, fill its disk and send it rubbish by the thousand; `npm run test:full` runs them.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1, // each of them wants the machine to itself
    testTimeout: 120_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } }, // a busy machine takes its time
  },
});
