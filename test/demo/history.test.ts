import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillHistory } from '../../src/demo/history.ts';
import { Random } from '../../src/demo/random.ts';
import { shipStretch } from '../../src/demo/traffic.ts';
import { micros, startTestApp, type TestApp } from '../support/app.ts';

const NOW = '2026-11-14T12:34:56.789012Z';

describe('the history of the synthetic platform', () => {
  let app: TestApp;
  let made: number;
  beforeAll(async () => {
    app = await startTestApp();
    made = await fillHistory(app.store, {
      nowMs: Number(micros(NOW)) / 1000,
      scale: 0.25,
      random: new Random(7),
    });
  });
  afterAll(() => app.close());

  const stats = async (project: string, interval: string, more: Record<string, string> = {}) =>
    (await app.query('functions.invocation-stats', { project, interval, ...more })).rows;

  const total = (rows: Record<string, unknown>[], column: string) =>
    rows.reduce((sum, row) => sum + Number(row[column]), 0);

  test('is of thousands of records', () => {
    expect(made).toBeGreaterThan(20_000);
  });

  test('is the same for the same seed, and another for another', () => {
    const toMs = Number(micros(NOW)) / 1000;
    const ship = (seed: number) =>
      shipStretch({ fromMs: toMs - 60_000, toMs, startMs: toMs, scale: 1 }, new Random(seed));
    expect(ship(1).length).toBeGreaterThan(10);
    expect(ship(1)).toEqual(ship(1));
    expect(ship(1)).not.toEqual(ship(2));
  });

  test.each(['busy-market', 'stormy-harbor', 'slow-river', 'quiet-garden'])(
    '%s has every day of the last seven, in both logs',
    async project => {
      expect(await stats(project, '7day')).toHaveLength(8);
      const { rows } = await app.query('usage.api-counts', { project, interval: 'daily' });
      expect(rows).toHaveLength(8);
      expect((await app.query('logs.all', { project, project_tier: 'PRO' })).rows.length).toBeGreaterThan(10);
    },
  );

  test('the busy one is far busier than the quiet one', async () => {
    const [busy, quiet] = await Promise.all([stats('busy-market', '7day'), stats('quiet-garden', '7day')]);
    expect(total(busy, 'count')).toBeGreaterThan(20 * total(quiet, 'count'));
  });

  test('the incident is over, and was bad', async () => {
    const rows = await stats('stormy-harbor', '1hr');
    expect(total(rows, 'error_count') / total(rows, 'count')).toBeGreaterThan(0.3);
    expect(total(await stats('stormy-harbor', '15min'), 'error_count')).toBeLessThan(2);
  });

  test('one function got slow, and the other did not', async () => {
    const averages = async (id: string) =>
      (await stats('slow-river', '7day', { function_id: id })).map(row => Number(row['avg_execution_time']));
    const [slow, steady] = [await averages('monthly-report'), await averages('level')];
    expect(slow.at(-1)).toBeGreaterThan(4 * Number(slow[0]));
    expect(steady.at(-1)).toBeLessThan(1.5 * Number(steady[0]));
  });
});
