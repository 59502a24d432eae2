import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/support/setup.ts'],
    pool: 'forks',
    fileParallelism: false, // one browser, one server, on machines that do other things too
    expect: { poll: { timeout: 20_000 } }, // a busy machine takes its time
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
