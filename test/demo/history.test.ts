import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { createTraffic, fillHistory } from '../../src/demo/traffic.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { micros, startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';

const NOW = '2026-11-14T12:34:56.789012Z';

describe('the history of the synthetic platform', () => {
  let app: TestApp;
  let recordCount: number;
  beforeAll(async () => {
    app = await startTestApp({
      endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined },
    });
    recordCount = await fillHistory(app.store, {
      endMs: Number(micros(NOW)) / 1000,
      scale: 0.25,
      random: new Random(7),
    });
  });
  afterAll(() => app.close());

  const stats = async (project: string, interval: string, more: Record<string, string> = {}) =>
    (await app.query('functions.invocation-stats', { project, interval, ...more })).rows;

  const total = (rows: Record<string, unknown>[], column: string) =>
    rows.reduce((sum, row) => sum + Number(row[column]), 0);

  test('has more than 20,000 records at a quarter of the normal traffic', () => {
    expect(recordCount).toBeGreaterThan(20_000);
  });

  test('the same seed creates the same records, another seed creates others', () => {
    const toMs = Number(micros(NOW)) / 1000;
    const create = (seed: number) =>
      createTraffic({ fromMs: toMs - 60_000, toMs, demoStartMs: toMs, scale: 1 }, new Random(seed));
    expect(create(1).edge.length).toBeGreaterThan(5);
    expect(create(1)).toEqual(create(1));
    expect(create(1)).not.toEqual(create(2));
  });

  test('the live traffic has records of all nine kinds', () => {
    const fromMs = Number(micros(NOW)) / 1000;
    const period = { fromMs, toMs: fromMs + 60_000, demoStartMs: fromMs, scale: 100 };
    const counts = Object.entries(createTraffic(period, new Random(1))).map(([kind, { length }]) => [
      kind,
      length > 0,
    ]);
    expect(counts).toEqual(LOG_KINDS.map(kind => [kind, true]));
  });

  test.each(['busy-market', 'stormy-harbor', 'slow-river', 'quiet-garden'])(
    '%s has requests and invocations on every day of the last seven',
    async project => {
      expect(await stats(project, '7day')).toHaveLength(8);
      const { rows } = await app.query('usage.api-counts', { project, interval: 'daily' });
      expect(rows).toHaveLength(8);
      expect((await app.query('logs.all', { project, project_tier: 'PRO' })).rows.length).toBeGreaterThan(10);
    },
  );

  test('busy-market has more than 20 times as many invocations as quiet-garden', async () => {
    const [busy, quiet] = await Promise.all([stats('busy-market', '7day'), stats('quiet-garden', '7day')]);
    expect(total(busy, 'count')).toBeGreaterThan(20 * total(quiet, 'count'));
  });

  test('stormy-harbor had an incident with many errors within the last hour, which is over', async () => {
    const rows = await stats('stormy-harbor', '1hr');
    expect(total(rows, 'error_count') / total(rows, 'count')).toBeGreaterThan(0.3);
    expect(total(await stats('stormy-harbor', '15min'), 'error_count')).toBeLessThan(2);
  });

  const search = async (kind: string, query: string) =>
    (await app.query('logs.search', { project: 'stormy-harbor', kind, query, project_tier: 'PRO' })).rows;

  test.each(LOG_KINDS)('stormy-harbor has records of the kind %s', async kind => {
    expect((await search(kind, '')).length).toBeGreaterThan(10);
  });

  describe('the incident of stormy-harbor', () => {
    const secondsAgo = (seconds: number) =>
      new Date(Number(micros(NOW) / 1000n) - seconds * 1000).toISOString();
    /** The part of the records of the last hour with this value, from 0 to 1. */
    const shareOf = async (kind: string, field: string, value: string, query: string) => {
      const parameters = { project: 'stormy-harbor', kind, field, query };
      const { rows } = await app.query('logs.fields', {
        ...parameters,
        iso_timestamp_start: secondsAgo(3600),
      });
      return Number(rows.find(row => row['value'] === value)?.['count'] ?? 0) / total(rows, 'count');
    };

    test.each([
      ['edge', 'path', '/rest/v1/orders'],
      ['function_edge', 'function', 'book-berth'],
    ])('most errors, and few of the other %s records, have the %s %s', async (kind, field, value) => {
      expect(await shareOf(kind, field, value, 'status:5xx')).toBeGreaterThan(0.95);
      expect(await shareOf(kind, field, value, '-status:5xx')).toBeLessThan(0.45);
    });

    test('the Postgres log has its cause: a migration that held a lock', async () => {
      const [waiting] = await search('postgres', '"still waiting for" "Process holding the lock: 4242"');
      expect(waiting?.['metadata']).toMatchObject({ parsed: { user_name: 'authenticator' } });
      const [end, start] = await search('postgres', '4242 "alter table public.orders" -authenticator');
      expect([start, end]).toMatchObject([
        {
          event_message: expect.stringContaining('statement: alter table'),
          timestamp: Date.parse(secondsAgo(34 * 60)) * 1000,
        },
        {
          event_message: expect.stringContaining('duration: 960000'),
          timestamp: Date.parse(secondsAgo(18 * 60)) * 1000,
        },
      ]);
    });

    test.each([
      ['edge', 'path', '/rest/v1/orders'],
      ['function_edge', 'function', 'book-berth'],
    ])(
      'logs.compare names what is different about the errors of kind %s first',
      async (kind, field, value) => {
        const { rows } = await app.query('logs.compare', {
          ...{ project: 'stormy-harbor', kind, query: 'status:>=500' },
          iso_timestamp_start: '2026-11-14T11:34:56Z',
        });
        expect(rows[0]).toMatchObject({ field, value });
      },
    );

    test('a failed invocation has the same id in the records of five kinds', async () => {
      const [failed] = await search('function', 'level:error "canceling statement due to statement timeout"');
      expect(failed?.['event_message']).toContain('/book-berth/index.ts');
      const id = (failed?.['metadata'] as { execution_id: string } | undefined)?.execution_id ?? 'none';
      const counts = await Promise.all(LOG_KINDS.map(async kind => [kind, (await search(kind, id)).length]));
      expect(counts.filter(([, count]) => count !== 0)).toEqual([
        ['edge', 1],
        ['postgres', 2],
        ['function_edge', 1],
        ['function', 1],
        ['rest', 1],
      ]);
    });
  });

  test('slow-river has one function that became slow and one that did not', async () => {
    const averages = async (id: string) =>
      (await stats('slow-river', '7day', { function_id: id })).map(row => Number(row['avg_execution_time']));
    const [slow, steady] = [await averages('monthly-report'), await averages('level')];
    expect(slow.at(-1)).toBeGreaterThan(4 * Number(slow[0]));
    expect(steady.at(-1)).toBeLessThan(1.5 * Number(steady[0]));
  });
});
