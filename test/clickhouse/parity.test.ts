import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { compareStores } from '../../src/endpoint/parity.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, NOW, testStoreOptions } from '../support/app.ts';
import { makeDatabase } from '../support/clickhouse.ts';
import { BUILT_IN } from '../support/own-endpoints.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { batches, makeDataFolder, removeDataFolder } from '../support/store.ts';

const PROJECTS = ['alpha', "o'hara", '🦕 é\\'];
const NOW_MICROS = micros(NOW);

const folders: string[] = [];
let duckdb: Store;
let clickhouse: Store;
beforeAll(async () => {
  const makeFolder = () => {
    const folder = makeDataFolder();
    folders.push(folder);
    return folder;
  };
  duckdb = await openStore(testStoreOptions(makeFolder()));
  clickhouse = await openStore({ ...testStoreOptions(makeFolder()), clickhouse: await makeDatabase() });
});
afterAll(async () => {
  await duckdb.close();
  await clickhouse.close();
  for (const folder of folders) removeDataFolder(folder);
});

/** Most records are young, so that every window and every bucket has some. */
const age = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 0, max: 3_600 }),
  fc.integer({ min: 0, max: 86_400 }),
  fc.integer({ min: 0, max: 8 * 86_400 }),
  fc.integer({ min: 0, max: 91 * 86_400 }),
);
const place = fc.record({ project: fc.constantFrom(...PROJECTS), age, micros: fc.nat(999_999) });
const path = fc
  .array(fc.constantFrom('/rest', '/storage', '/auth', '/realtime', '/other', '\n'), { maxLength: 3 })
  .map(parts => parts.join(''));

const atOf = (draft: { age: number; micros: number }) =>
  NOW_MICROS - BigInt(draft.age) * 1_000_000n - BigInt(draft.micros);

const edge = fc
  .record({ place, path, message: fc.string({ unit: 'binary' }), metadata: fc.object({ maxDepth: 1 }) })
  .map(draft =>
    edgeRecord({
      at: atOf(draft.place),
      project: draft.place.project,
      path: draft.path,
      url: `https://${draft.place.project}.example${draft.path}`,
      message: draft.message.toWellFormed(),
      metadata: draft.metadata as Record<string, unknown>,
    }),
  );
const functionEdge = fc
  .record({
    place,
    ms: fc.option(fc.oneof(fc.double({ min: 0, max: 1e4, noNaN: true }).map(Math.fround), fc.nat(60_000))),
    status: fc.option(fc.integer({ min: 100, max: 599 })),
    functionId: fc.constantFrom('a', 'b'),
  })
  .map(({ place: at, ms, status, functionId }) =>
    functionEdgeRecord({ at: atOf(at), project: at.project, ms, status, functionId }),
  );

const sample = <T>(arbitrary: fc.Arbitrary<T>, count: number) =>
  fc.sample(arbitrary, { numRuns: count, seed: Math.trunc(performance.timeOrigin) });

test('the same random records in both, every endpoint over a grid of parameters: the same answers', async () => {
  const records: [LogKind, LogRecord[]][] = [
    ['edge', sample(edge, 3_000)],
    ['function_edge', sample(functionEdge, 3_000)],
  ];
  for (const store of [duckdb, clickhouse])
    for (const [kind, all] of records) await store.append(batches(kind, all));
  const side = (store: Store) => ({
    store,
    catalog: loadCatalog({ builtIn: BUILT_IN, custom: undefined }, store.name),
  });
  const parity = await compareStores(side(duckdb), side(clickhouse), PROJECTS, NOW_MICROS);
  expect(parity.differences).toEqual([]);
  expect(parity.queries).toBe(3 * 5 + 3 * 3 + 3 * 4 * 3 * 3);
  expect(parity.rows).toBeGreaterThan(1_000);
});
