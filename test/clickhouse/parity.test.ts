import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { explainEndpoint } from '../../src/endpoint/explain.ts';
import { bindParameters } from '../../src/endpoint/parameters.ts';
import { compareStores } from '../../src/endpoint/parity.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, NOW, testStoreOptions } from '../support/app.ts';
import { createDatabase } from '../support/clickhouse.ts';
import { BUILT_IN, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { SEED } from '../support/seed.ts';
import { batches, createDataDirectory, removeDataDirectory } from '../support/store.ts';

const PROJECTS = ['alpha', "o'hara", '🦕 é\\'];
const NOW_MICROS = micros(NOW);

const directories: string[] = [];
let duckdb: Store;
let clickhouse: Store;
beforeAll(async () => {
  const createDirectory = () => {
    const directory = createDataDirectory();
    directories.push(directory);
    return directory;
  };
  duckdb = await openStore(testStoreOptions(createDirectory()));
  clickhouse = await openStore({
    ...testStoreOptions(createDirectory()),
    clickhouse: await createDatabase(),
  });
  const records: [LogKind, LogRecord[]][] = [
    ['edge', sample(edge, 3_000)],
    ['function_edge', sample(functionEdge, 3_000)],
  ];
  for (const store of [duckdb, clickhouse])
    for (const [kind, all] of records) await store.append(batches(kind, all));
});
afterAll(async () => {
  await duckdb.close();
  await clickhouse.close();
  for (const directory of directories) removeDataDirectory(directory);
});

/** Seconds before now. Most records are recent, so that every time range and every bucket has some. */
const age = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 0, max: 3_600 }),
  fc.integer({ min: 0, max: 86_400 }),
  fc.integer({ min: 0, max: 8 * 86_400 }),
  fc.integer({ min: 0, max: 91 * 86_400 }),
);
const origin = fc.record({ project: fc.constantFrom(...PROJECTS), age, micros: fc.nat(999_999) });
const path = fc
  .array(fc.constantFrom('/rest', '/storage', '/auth', '/realtime', '/other', '\n'), { maxLength: 3 })
  .map(parts => parts.join(''));

const timestampOf = ({ age: seconds, micros: fraction }: { age: number; micros: number }) =>
  NOW_MICROS - BigInt(seconds) * 1_000_000n - BigInt(fraction);

const edge = fc
  .record({ origin, path, message: fc.string({ unit: 'binary' }), metadata: fc.object({ maxDepth: 1 }) })
  .map(draft =>
    edgeRecord({
      at: timestampOf(draft.origin),
      project: draft.origin.project,
      path: draft.path,
      url: `https://${draft.origin.project}.example${draft.path}`,
      message: draft.message.toWellFormed(),
      metadata: draft.metadata as Record<string, unknown>,
    }),
  );
const functionEdge = fc
  .record({
    origin,
    ms: fc.option(fc.oneof(fc.double({ min: 0, max: 1e4, noNaN: true }).map(Math.fround), fc.nat(60_000))),
    status: fc.option(fc.integer({ min: 100, max: 599 })),
    functionId: fc.constantFrom('a', 'b'),
  })
  .map(({ origin: { project, ...time }, ms, status, functionId }) =>
    functionEdgeRecord({ at: timestampOf(time), project, ms, status, functionId }),
  );

const sample = <T>(arbitrary: fc.Arbitrary<T>, count: number) =>
  fc.sample(arbitrary, { numRuns: count, seed: SEED });

const catalogOf = (store: Store) => loadCatalog({ builtIn: BUILT_IN, custom: undefined }, store.name);

test('both stores return the same results for random records, for every endpoint and a grid of parameters', async () => {
  const side = (store: Store) => ({ store, catalog: catalogOf(store) });
  const parity = await compareStores(side(duckdb), side(clickhouse), PROJECTS, NOW_MICROS);
  expect(parity.differences).toEqual([]);
  expect(parity.queries).toBe(3 * 5 + 3 * 3 + 3 * 4 * 3 * 3);
  expect(parity.rows).toBeGreaterThan(1_000);
});

test('an endpoint with a required search parameter is compared too', async () => {
  const custom = writeEndpointFolders({
    'test.count': {
      yaml: `
id: 0c6ad3a4-5d5c-4dc8-9d3c-3c9f3c9b7f31
name: test.count
description: Counts records.
reads: edge
parameters:
  query: { type: search, required: true, description: What to search for. }
columns:
  records: { type: integer, description: The number of records. }
cache: none
`,
      sql: 'select count(*) as records from {{logs}} where {{search}}',
      clickhouse: 'select count() as records from {{logs}} where {{search}}',
    },
  });
  try {
    const side = (store: Store) => {
      const { endpoints } = loadCatalog({ builtIn: BUILT_IN, custom: custom.folder }, store.name);
      const [endpoint] = endpoints.filter(({ isShipped }) => !isShipped);
      if (endpoint === undefined) throw new Error('there is no custom endpoint');
      return { store, catalog: { endpoints: [endpoint], find: () => endpoint } };
    };
    const parity = await compareStores(side(duckdb), side(clickhouse), PROJECTS, NOW_MICROS);
    expect(parity).toMatchObject({ queries: 1, differences: [] });
  } finally {
    custom.remove();
  }
});

const START = '2026-11-12T00:00:00.000001Z';
const END = '2026-11-14T00:00:00Z';

test.each<[name: string, parameters: string]>([
  ['logs.all', ''],
  ['logs.all', 'project_tier=PAYG'],
  ['logs.all', `project_tier=PRO&iso_timestamp_start=${START}`],
  ['logs.all', `project_tier=PRO&iso_timestamp_end=${END}`],
  ['logs.all', `project_tier=PRO&iso_timestamp_start=${START}&iso_timestamp_end=${END}`],
  ['functions.invocation-stats', 'interval=5min'],
  ['functions.invocation-stats', 'interval=7day&function_id=a'],
  ['usage.api-counts', 'interval=minutely'],
  ['usage.api-counts', 'interval=daily'],
])('both stores return the same explanation of %s?%s, pinned or not', async (name, query) => {
  for (const project of [PROJECTS[0] ?? '', 'nobody'])
    for (const projects of [undefined, [project]]) {
      const explain = async (store: Store) => {
        const endpoint = catalogOf(store).find(name);
        if (endpoint === undefined) throw new Error(`there is no endpoint ${name}`);
        const parameters = new URLSearchParams(`${query}&project=${project}`);
        const values = bindParameters(endpoint.definition, parameters);
        return explainEndpoint({ store, clock: () => NOW_MICROS }, endpoint, values, {
          token: { name: 'pinned', sha256: '', projects },
        });
      };
      expect(await explain(clickhouse)).toEqual(await explain(duckdb));
    }
});
