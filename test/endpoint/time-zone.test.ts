import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { micros, startTestApp, type TestApp } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';

// The suite's clock stands at 2026-11-14T12:34:56.789012Z.
describe('on a machine that is not in UTC', () => {
  const zone = process.env['TZ'];
  let app: TestApp;
  beforeAll(async () => {
    process.env['TZ'] = 'Asia/Kathmandu'; // 5:45 ahead: neither its hours nor its days start when those of UTC do
    app = await startTestApp();
  });
  afterAll(async () => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
    await app.close();
  });

  test('the tests see its time zone', () => {
    expect(new Date(0).getMinutes()).not.toBe(0);
  });

  test('the buckets of functions.invocation-stats are those of UTC', async () => {
    await app.append('function_edge', [functionEdgeRecord({ at: '2026-11-13T20:20:20Z', project: 'zone' })]);
    const startOf = async (interval: string) =>
      (await app.query('functions.invocation-stats', { project: 'zone', interval })).rows.map(
        row => row['timestamp'],
      );
    expect(await startOf('1day')).toEqual([Number(micros('2026-11-13T20:00:00Z'))]);
    expect(await startOf('7day')).toEqual([Number(micros('2026-11-13T00:00:00Z'))]);
  });

  test('the buckets of usage.api-counts are those of UTC', async () => {
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:10:00Z', project: 'zone' })]);
    const startOf = async (interval: string) =>
      (await app.query('usage.api-counts', { project: 'zone', interval })).rows.map(row => row['timestamp']);
    expect(await startOf('hourly')).toEqual(['2026-11-14T12:00:00Z']);
    expect(await startOf('daily')).toEqual(['2026-11-14T00:00:00Z']);
  });

  test('timestamps of logs.all, and a start without an offset, are UTC', async () => {
    await app.append('edge', [
      edgeRecord({ id: 'in', at: '2026-11-14T12:00:00.000001Z', project: 'zone-logs' }),
      edgeRecord({ id: 'out', at: '2026-11-14T12:00:00Z', project: 'zone-logs' }),
    ]);
    const start = { iso_timestamp_start: '2026-11-14T12:00:00' };
    const { rows } = await app.query('logs.all', { project: 'zone-logs', ...start });
    expect(rows).toMatchObject([{ id: 'in', timestamp: Number(micros('2026-11-14T12:00:00.000001Z')) }]);
  });
});
