import { defineConfig } from 'vitest/config';

// What needs a ClickHouse: `npm run test:clickhouse`, part of `npm run test:full`. The tests of the contract and of the
// endpoints are the very files that `npm test` runs on the embedded store.
export default defineConfig({
  test: {
    include: [
      'test/clickhouse/**/*.test.ts',
      'test/store/contract.test.ts',
      'test/endpoint/{logs-all,invocation-stats,api-counts,property,time-zone,documented}.test.ts',
    ],
    // Where the run is given a server, that one is tested; the cluster of the tests is not it.
    exclude: process.env['DENDRO_TEST_CLICKHOUSE'] ? ['test/clickhouse/cluster/**'] : [],
    globalSetup: ['test/clickhouse/setup.ts'],
    pool: 'forks',
    maxWorkers: 2, // one engine answers them all
    expect: { poll: { timeout: 30_000 } }, // a busy machine takes its time
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
