import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { createTraffic, fillHistory } from '../../src/demo/traffic.ts';
import { micros, startTestApp, type TestApp } from '../support/app.ts';

const NOW = '2026-11-14T12:34:56.789012Z';

describe('the history of the synthetic platform', () => {
  let app: TestApp;
  let recordCount: number;
  beforeAll(async () => {
    app = await startTestApp();
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

  test.each(['busy-market', 'stormy-harbor', 'slow-river', 'quiet-garden'])(
    '%s has records on every day of the last seven, in both log kinds',
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

  test('slow-river has one function that became slow and one that did not', async () => {
    const averages = async (id: string) =>
      (await stats('slow-river', '7day', { function_id: id })).map(row => Number(row['avg_execution_time']));
    const [slow, steady] = [await averages('monthly-report'), await averages('level')];
    expect(slow.at(-1)).toBeGreaterThan(4 * Number(slow[0]));
    expect(steady.at(-1)).toBeLessThan(1.5 * Number(steady[0]));
  });
});
