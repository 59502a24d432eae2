import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { bindParameters } from '../../src/endpoint/parameters.ts';
import { runEndpoint } from '../../src/endpoint/run-endpoint.ts';
import { micros, NOW, queryPages, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { edgeRecord } from '../support/record.ts';
import {
  batches,
  createDataDirectory,
  openTestStore,
  removeDataDirectory,
  savedQuery,
} from '../support/store.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

/** logs.search without a search, but each slice takes at least a second. */
const SLOW_SEARCH = {
  yaml: `
id: 2b1c4b5e-52a4-4f6e-8f0b-7d8f3a1c9e12
name: test.slow-search
description: Made for a test.
reads: edge
applies_pin: true
parameters:
  project: { type: text, required: true, description: Any text. }
  dense_seconds: { type: integer, min: 0, max: 60000, default: 60000, description: Longer slices after a cursor take 8 seconds. }
  slice_ms: { type: integer, min: 0, max: 60000, default: 1000, description: The time that each slice takes. }
  start: { type: timestamp, description: Any time. }
  end: { type: timestamp, description: Any time. }
  tier:
    type: choice
    choices: { ALL: { days: 90 } }
    fallback: ALL
    description: How far back.
  cursor: { type: cursor, description: Where the page starts. }
columns:
  id: { type: text, description: Any text. }
  timestamp: { type: unix_microseconds, description: Any time. }
range: { start: start, end: end, days: days }
max_rows: 100
cache: none
`,
  sql: `
select id, timestamp from {{logs}}
where project = $project and timestamp > $slice_start and timestamp <= $slice_end
  and ($cursor_id is null or timestamp < $cursor_timestamp or id >= $cursor_id)
  and (select sleep_ms(case when $cursor_skip > 0 and epoch($slice_end - $slice_start) > $dense_seconds then 8000 else $slice_ms end)) is null
order by timestamp desc, id
limit 101 offset $cursor_skip`,
};

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('an endpoint with partial results', () => {
  const dataDirectory = createDataDirectory();
  afterAll(() => removeDataDirectory(dataDirectory));
  const { folder: custom } = useEndpoints({ 'test.slow-search': SLOW_SEARCH });
  const app = useApp({
    store: { ...testStoreOptions(dataDirectory), queryTimeoutSeconds: 6 },
    endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom },
  });
  beforeAll(async () => {
    const now = micros('2026-11-14T12:34:56Z');
    const day = 86_400_000_000n;
    await app.append(
      'edge',
      Array.from({ length: 60 }, (_, i) =>
        edgeRecord({ id: `day-${i}`, at: now - BigInt(i) * day, project: 'slow' }),
      ),
    );
  });

  const walk = async (parameters: Record<string, string>) => {
    const pages = await queryPages(app, 'test.slow-search', parameters);
    return {
      seen: pages.flatMap(({ rows }) => rows.map(row => row['id'])),
      clipped: pages.map(({ headers }) => headers.get('dendro-clipped')),
    };
  };

  test('returns what it found at the time limit, with a cursor; its pages have every record once', async () => {
    const { seen, clipped } = await walk({ project: 'slow' });
    expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => `day-${i}`));
    expect(clipped.length).toBeGreaterThan(1);
    expect(new Set(clipped.slice(0, -1))).toEqual(new Set(['time-limit']));
    expect(clipped.at(-1)).toBeNull();
  });

  test('shrinks a first slice that exceeds the time limit, and repeats no record of the page before', async () => {
    const ids = Array.from({ length: 150 }, (_, i) => `tie-${String(i).padStart(3, '0')}`);
    const at = '2026-11-14T12:00:00Z';
    await app.append(
      'edge',
      ids.map(id => edgeRecord({ id, at, project: 'ties' })),
    );
    const { seen, clipped } = await walk({ project: 'ties', slice_ms: '0', dense_seconds: '600' });
    expect(seen).toEqual(ids);
    expect([clipped[0], clipped.at(-1)]).toEqual([null, null]);
    expect(new Set(clipped.slice(1, -1))).toEqual(new Set(['time-limit']));
  });

  test('is 504 if a slice of one second is not searched within the time limit', async () => {
    const second = { start: '2026-11-14T12:34:55Z', end: '2026-11-14T12:34:56Z' };
    const parameters = { project: 'slow', slice_ms: '8000', ...second };
    const { status, error } = await app.query('test.slow-search', parameters);
    expect([status, error.code]).toEqual([504, 'query_timeout']);
    expect(error.message).toMatch(
      /^not even one second of the time range could be searched within the time limit;/,
    );
  });
});

describe('an endpoint with partial results whose query slots are busy', () => {
  const { folder: custom } = useEndpoints({ 'test.slow-search': SLOW_SEARCH });

  test.each([
    ['the time range has records', '2026-11-14T12:00:00Z'],
    ['the newest record is older than the time range', '2026-11-13T12:00:00Z'],
  ])('reports that the query waited too long in the queue, if %s', async (_, at) => {
    const { store, close } = await openTestStore({ queryConcurrency: 1 });
    try {
      await store.append(batches('edge', [edgeRecord({ at, project: 'p' })]));
      const endpoint = loadCatalog({ builtIn: BUILT_IN, custom }, 'duckdb').find('test.slow-search');
      if (endpoint === undefined) throw new Error('there is no endpoint test.slow-search');
      const parameters = new URLSearchParams({ project: 'p', slice_ms: '0', start: '2026-11-14T00:00:00Z' });
      const values = bindParameters(endpoint.definition, parameters);
      const dependencies = { store, clock: () => micros(NOW), timeLimitMs: 500 };
      const occupied = new AbortController();
      const other = store.query(
        savedQuery('select sleep_ms(25000) is null', ['text']),
        {},
        { signal: occupied.signal },
      );
      await expect(runEndpoint(dependencies, endpoint, values)).rejects.toMatchObject({
        code: 'unavailable',
        message: 'the query waited too long in the queue; retry in a moment',
      });
      occupied.abort(new Error('the test needs the slot'));
      await expect(other).rejects.toThrow('the test needs the slot');
      const { value: result } = await runEndpoint({ ...dependencies, timeLimitMs: 20_000 }, endpoint, values);
      expect(result.notes.clipped).toEqual([]);
    } finally {
      await close();
    }
  });
});
