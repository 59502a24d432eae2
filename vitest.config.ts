// The test projects. `npm test` runs `unit`; `npm run test:full` runs the others, and a part of `unit` on Node 24. To
// run a single one: `npx vitest run --project NAME`. One run can select only projects with the same number of workers.
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

/** Random inputs by the thousand, slow clients, many processes and restarts. With them, `npm test` would take twice as long. */
const SLOW_TESTS = [
  'test/alert/kill.test.ts',
  'test/acceptance/{alert,backup,data-directory,demo,environment,erase,first-token}.test.ts',
  'test/acceptance/{ingest,ingest-once,intake-load,mcp,otlp,query,repeats,secrets,serve,token}.test.ts',
  'test/acceptance/wrong-tokens.test.ts',
  'test/backup/{incremental,moment}.test.ts',
  'test/cli/{check,check-deep}.test.ts',
  'test/demo/history.test.ts',
  'test/endpoint/{partial-results,property,redact,search-property}.test.ts',
  'test/http/{hardening,overload,random-requests,random-searches,tls,unsent-responses}.test.ts',
  'test/intake/{delivery,erasure,idempotency,inspect-files,missing-spool,random-records,retention}.test.ts',
  'test/intake/{several-kinds,spool,store-change}.test.ts',
  'test/logs/{exact-json,otlp-protobuf,read-file}.test.ts',
  'test/store/duckdb-{compaction,damage,eviction,exactly-once,large-records,memtables,model,processes,removal,text-filter,upgrade}.test.ts',
  'test/studio/{attack,property}.test.ts',
  'test/system/lock.test.ts',
  'test/token/{auth-throttle,stalled-change}.test.ts',
  'test/upgrade/{data-directory,releases}.test.ts',
];

const unit: TestProjectInlineConfiguration = {
  test: {
    name: 'unit',
    include: ['test/**/*.test.ts'],
    // These take minutes or need programs that `npm ci` does not install.
    exclude: [
      'test/shippers/**',
      'test/browser/**',
      'test/faults/**',
      'test/crash/simulate.test.ts',
      'test/clickhouse/**',
      'test/packaging/**',
      'test/operations/**',
      ...SLOW_TESTS,
    ],
    setupFiles: ['test/support/seed.ts'],
    pool: 'forks', // the native library of a store needs its own process
    isolate: false, // starting a process for each file takes a third of the CPU time
    maxWorkers: 3, // also on fewer cores: most tests wait for processes, sockets or the disk
    expect: { poll: { timeout: 20_000 } }, // enough on a busy machine
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
};

const slow: TestProjectInlineConfiguration = {
  test: {
    name: 'slow',
    include: SLOW_TESTS,
    setupFiles: ['test/support/seed.ts'],
    pool: 'forks',
    isolate: false,
    maxWorkers: 3,
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 600_000,
    hookTimeout: 60_000,
  },
};

/** Kills the program, fills its disk and sends it thousands of malformed requests. */
const faults: TestProjectInlineConfiguration = {
  test: {
    name: 'faults',
    include: ['test/faults/**/*.test.ts', 'test/crash/simulate.test.ts'],
    pool: 'forks',
    maxWorkers: 1, // each test needs the whole machine
    expect: { poll: { timeout: 30_000 } },
    testTimeout: process.env['DENDRO_FAULT_SIZE'] === 'full' ? 1_800_000 : 300_000,
    hookTimeout: 30_000,
  },
};

/** Real log shippers from Debian packages send their logs to the intake. */
const shippers: TestProjectInlineConfiguration = {
  test: {
    name: 'shippers',
    include: ['test/shippers/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
};

/** The artefacts and examples in deploy/, and the npm package: built, installed and run. */
const packaging: TestProjectInlineConfiguration = {
  test: {
    name: 'packaging',
    include: ['test/packaging/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1, // builds need the whole machine
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 120_000,
    hookTimeout: 600_000,
  },
};

/** Metrics, alerts and the dashboard with a real Prometheus, and backups with several tar programs, from Debian packages. */
const operations: TestProjectInlineConfiguration = {
  test: {
    name: 'operations',
    include: ['test/operations/**/*.test.ts'],
    pool: 'forks',
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 60_000,
    hookTimeout: 180_000, // downloads the packages
  },
};

/** The console in Chromium: `npm run test:browser`. */
const browser: TestProjectInlineConfiguration = {
  test: {
    name: 'browser',
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/support/setup.ts'],
    pool: 'forks',
    fileParallelism: false, // all tests share one browser and one server
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 180_000,
    hookTimeout: 120_000,
  },
};

/** `npm run test:clickhouse`. Each of these projects has a server of its own: one for all tests runs out of its 2 GiB of memory. */
const clickhouse: TestProjectInlineConfiguration = {
  test: {
    name: 'clickhouse',
    include: ['test/clickhouse/**/*.test.ts'],
    // DENDRO_TEST_CLICKHOUSE names a server to test; the cluster tests start their own servers.
    exclude: process.env['DENDRO_TEST_CLICKHOUSE'] ? ['test/clickhouse/cluster/**'] : [],
    globalSetup: ['test/clickhouse/setup.ts'],
    setupFiles: ['test/support/seed.ts'],
    pool: 'forks',
    maxWorkers: 2, // all tests share one server
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
};

/** The same files that the projects `unit` and `slow` run on the embedded store. */
const clickhouseEndpoints: TestProjectInlineConfiguration = {
  test: {
    ...clickhouse.test,
    name: 'clickhouse-endpoints',
    include: [
      'test/store/contract.test.ts',
      'test/endpoint/{logs-all,invocation-stats,api-counts,property,time-zone,documented,explain,typed-parameters,alerts-pack}.test.ts',
    ],
  },
};

/** The tests of the explore pack and of Studio's queries. */
const clickhouseSearch: TestProjectInlineConfiguration = {
  test: {
    ...clickhouse.test,
    name: 'clickhouse-search',
    maxWorkers: 1, // the WebAssembly engine runs one query at a time, so a second worker only makes both wait
    include: [
      'test/endpoint/{explore,logs-search,search-property}.test.ts',
      'test/studio/{studio,property}.test.ts',
    ],
  },
};

// Without --project, only `unit`: `clickhouse` shares files with it, and the others need programs that may be missing.
const isProjectSelected = process.argv.some(argument => argument.startsWith('--project'));

export default defineConfig({
  test: {
    projects: isProjectSelected
      ? [
          unit,
          slow,
          faults,
          shippers,
          packaging,
          operations,
          browser,
          clickhouse,
          clickhouseEndpoints,
          clickhouseSearch,
        ]
      : [unit],
  },
});
