import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { micros, startTestApp, type TestApp } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('on a machine with another time zone than UTC', () => {
  const zone = process.env['TZ'];
  let app: TestApp;
  beforeAll(async () => {
    process.env['TZ'] = 'Asia/Kathmandu'; // UTC+05:45: neither hours nor days start at the same time as in UTC
    app = await startTestApp();
  });
  afterAll(async () => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
    await app.close();
  });

  test('the test process uses that time zone', () => {
    expect(new Date(0).getMinutes()).not.toBe(0);
  });

  test('the buckets of functions.invocation-stats start at UTC hours and days', async () => {
    await app.append('function_edge', [functionEdgeRecord({ at: '2026-11-13T20:20:20Z', project: 'zone' })]);
    const startOf = async (interval: string) =>
      (await app.query('functions.invocation-stats', { project: 'zone', interval })).rows.map(
        row => row['timestamp'],
      );
    expect(await startOf('1day')).toEqual([Number(micros('2026-11-13T20:00:00Z'))]);
    expect(await startOf('7day')).toEqual([Number(micros('2026-11-13T00:00:00Z'))]);
  });

  test('the buckets of usage.api-counts start at UTC hours and days', async () => {
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:10:00Z', project: 'zone' })]);
    const startOf = async (interval: string) =>
      (await app.query('usage.api-counts', { project: 'zone', interval })).rows.map(row => row['timestamp']);
    expect(await startOf('hourly')).toEqual(['2026-11-14T12:00:00Z']);
    expect(await startOf('daily')).toEqual(['2026-11-14T00:00:00Z']);
  });

  test('timestamps of logs.all and a start without an offset are in UTC', async () => {
    await app.append('edge', [
      edgeRecord({ id: 'in', at: '2026-11-14T12:00:00.000001Z', project: 'zone-logs' }),
      edgeRecord({ id: 'out', at: '2026-11-14T12:00:00Z', project: 'zone-logs' }),
    ]);
    const start = { iso_timestamp_start: '2026-11-14T12:00:00' };
    const { rows } = await app.query('logs.all', { project: 'zone-logs', ...start });
    expect(rows).toMatchObject([{ id: 'in', timestamp: Number(micros('2026-11-14T12:00:00.000001Z')) }]);
  });
});
