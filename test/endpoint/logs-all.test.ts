import { beforeAll, describe, expect, test } from 'vitest';
import { micros } from '../support/app.ts';
import { edgeRecord, record } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

// What property.test.ts does not cover. The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('logs.all', () => {
  const app = useApp();

  const idsOf = async (parameters: Record<string, string>) => {
    const { status, rows } = await app.query('logs.all', parameters);
    expect(status).toBe(200);
    return rows.map(row => row['id']);
  };

  test('returns id, timestamp, event_message and metadata, in that order, newest first', async () => {
    await app.append('edge', [
      edgeRecord({ id: 'old', at: '2026-11-14T10:00:00.000001Z', project: 'shape', message: 'first' }),
      edgeRecord({
        id: 'new',
        at: '2026-11-14T11:00:00.123456Z',
        project: 'shape',
        message: 'second',
        metadata: { request: { method: 'GET' }, nested: [1, { deep: null }] },
      }),
    ]);
    const { text } = await app.query('logs.all', { project: 'shape' });
    expect(text).toBe(
      `{"result":[{"id":"new","timestamp":${micros('2026-11-14T11:00:00.123456Z')},"event_message":"second",` +
        '"metadata":{"request":{"method":"GET"},"nested":[1,{"deep":null}]}},' +
        `{"id":"old","timestamp":${micros('2026-11-14T10:00:00.000001Z')},"event_message":"first","metadata":{}}]}`,
    );
  });

  test('returns metadata unchanged, including numbers that a double cannot represent', async () => {
    const metadata = '{"big":12345678901234567890123,"small":1e-400,"one":1.0,"text":"\\u00e9 \\"quoted\\""}';
    await app.append('edge', [{ ...edgeRecord({ at: '2026-11-14T12:00:00Z', project: 'exact' }), metadata }]);
    expect((await app.query('logs.all', { project: 'exact' })).text).toContain(`"metadata":${metadata}}`);
  });

  test('returns only records of the edge log', async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('edge', [edgeRecord({ id: 'mine', at, project: 'only' })]);
    for (const kind of ['postgres', 'function', 'auth', 'realtime', 'storage', 'rest', 'pooler'] as const)
      await app.append(kind, [record({ at, project: 'only' })]);
    expect(await idsOf({ project: 'only' })).toEqual(['mine']);
  });

  test('returns the newest 100 rows', async () => {
    const start = micros('2026-11-14T12:00:00Z');
    await app.append(
      'edge',
      Array.from({ length: 130 }, (_, i) =>
        edgeRecord({ id: `n${i}`, at: start + BigInt(i), project: 'many' }),
      ),
    );
    const { rows } = await app.query('logs.all', { project: 'many' });
    expect(rows.map(row => row['id'])).toEqual(Array.from({ length: 100 }, (_, i) => `n${129 - i}`));
  });

  describe('the time range', () => {
    beforeAll(() =>
      app.append(
        'edge',
        [0, 1, 2, 3].map(i =>
          edgeRecord({ id: `t${i}`, at: `2026-11-14T09:00:00.00000${i}Z`, project: 'range' }),
        ),
      ),
    );

    test('an empty bound and one in the far future are no bounds', async () => {
      const all = { iso_timestamp_start: '', iso_timestamp_end: '9999-12-31T23:59:59.999999Z' };
      expect(await idsOf({ project: 'range', ...all })).toHaveLength(4);
    });

    test.each([
      ['an offset', '2026-11-14T11:00:00.000001+02:00'],
      ['a negative offset', '2026-11-14T04:30:00.000001-04:30'],
      ['no offset, which means UTC', '2026-11-14T09:00:00.000001'],
      ['nine digits, truncated to microseconds', '2026-11-14T09:00:00.000001999Z'],
      ['lower-case letters', '2026-11-14t09:00:00.000001z'],
    ])('a start may have %s', async (_, start) => {
      expect(await idsOf({ project: 'range', iso_timestamp_start: start })).toEqual(['t3', 't2']);
    });

    test.each([
      '2026-11-14T11:00:00.000001+02:00',
      '2026-11-14 11:00:00,000001+02',
      '20261114T110000.000001+0200',
    ])('a space in place of the unescaped + of %s is read as +', async start => {
      const query = `project=range&iso_timestamp_start=${start}`;
      const { rows } = await app.get(`/api/endpoints/query/logs.all?${query}`);
      expect(rows.map(row => row['id'])).toEqual(['t3', 't2']);
    });

    test('a space between a date and a time stays a space', async () => {
      for (const start of ['2026-11-14 09:01', '20261114 0901', '2026-11-14 10'])
        expect(await idsOf({ project: 'range', iso_timestamp_start: start })).toEqual([]);
    });

    test('a month is its first moment, and 24:00 the next midnight', async () => {
      expect(await idsOf({ project: 'range', iso_timestamp_start: '2026-11' })).toHaveLength(4);
      expect(await idsOf({ project: 'range', iso_timestamp_end: '2026-11' })).toEqual([]);
      expect(await idsOf({ project: 'range', iso_timestamp_end: '2026-11-13T24:00:00Z' })).toEqual([]);
      expect(await idsOf({ project: 'range', iso_timestamp_end: '2026-11-14T24:00:00Z' })).toHaveLength(4);
    });

    test('a date without a time means midnight UTC', async () => {
      expect(await idsOf({ project: 'range', iso_timestamp_start: '2026-11-14' })).toHaveLength(4);
      expect(await idsOf({ project: 'range', iso_timestamp_end: '2026-11-14' })).toEqual([]);
    });

    test.each([
      'yesterday',
      '2026-W46-6',
      '2026-318',
      '2026-02-30T00:00:00Z',
      '2026-11-14T24:01:00Z',
      '2026-11-14T09:00:00.Z',
      '2026-11-14T09:00:00.1234567890Z',
      '2026-11-14T09:00:00+25:00',
      '2026-11-14\0',
      `2026-11-14T09:00:00Z${' '.repeat(2000)}`,
    ])('%j is not a timestamp: 400 that names the parameter', async value => {
      const { status, error } = await app.query('logs.all', { project: 'range', iso_timestamp_end: value });
      expect(status).toBe(400);
      expect(error).toMatchObject({ code: 'invalid_parameter', param: 'iso_timestamp_end' });
      if (!/\0|\s/.test(value)) expect(error?.message).toContain('2026-11-14T09:30:00.123456+02:00');
    });
  });
});
