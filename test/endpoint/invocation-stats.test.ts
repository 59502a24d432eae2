import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { micros, startTestApp, type TestApp } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { percentileBounds } from '../support/reference-endpoints.ts';

const NAME = 'functions.invocation-stats';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('functions.invocation-stats', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  const rowsOf = async (parameters: Record<string, string>) => {
    const { status, rows } = await app.query(NAME, parameters);
    expect(status).toBe(200);
    return rows;
  };
  const bucketsOf = async (parameters: Record<string, string>) =>
    (await rowsOf(parameters)).map(row => new Date(Number(row['timestamp']) / 1000).toISOString());

  test('a row has eight numbers, in the documented order', async () => {
    await app.append('function_edge', [
      functionEdgeRecord({ at: '2026-11-14T12:10:00.5Z', project: 'shape', ms: 10.5, status: 200 }),
      functionEdgeRecord({ at: '2026-11-14T12:20:00.123456Z', project: 'shape', ms: 20, status: 500 }),
    ]);
    const { text } = await app.query(NAME, { project: 'shape' });
    expect(text).toMatch(
      new RegExp(
        `^\\{"result":\\[\\{"timestamp":${micros('2026-11-14T12:00:00Z')},"min_execution_time":10.5,` +
          '"max_execution_time":20,"avg_execution_time":15.25,"p95_execution_time":[0-9.]+,' +
          '"p99_execution_time":[0-9.]+,"count":2,"error_count":1\\}\\]\\}$',
      ),
    );
  });

  test('returns an empty list if there are no records', async () => {
    expect((await app.query(NAME, { project: 'nobody' })).text).toBe('{"result":[]}');
  });

  test('counts only records of the project in the function edge log', async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('function_edge', [
      functionEdgeRecord({ at, project: 'only' }),
      functionEdgeRecord({ at, project: 'only-other' }),
      functionEdgeRecord({ at, project: 'ONLY' }),
      functionEdgeRecord({ at, project: 'only ' }),
    ]);
    await app.append('function', [record({ at, project: 'only' })]);
    await app.append('edge', [edgeRecord({ at, project: 'only' })]);
    expect(await rowsOf({ project: 'only' })).toMatchObject([{ count: 1 }]);
  });

  describe('function_id', () => {
    beforeAll(() =>
      app.append('function_edge', [
        functionEdgeRecord({ at: '2026-11-14T12:00:00Z', project: 'functions', functionId: 'a' }),
        functionEdgeRecord({ at: '2026-11-14T12:00:00Z', project: 'functions', functionId: 'a' }),
        functionEdgeRecord({ at: '2026-11-14T12:00:00Z', project: 'functions', functionId: 'A' }),
        {
          ...functionEdgeRecord({ at: '2026-11-14T12:00:00Z', project: 'functions' }),
          extracted: { function_id: null, execution_time_ms: 1, status_code: 200 },
        },
      ]),
    );

    test('if absent, all functions count, and records without a function', async () => {
      expect(await rowsOf({ project: 'functions' })).toMatchObject([{ count: 4 }]);
    });

    test('if empty, all functions count', async () => {
      expect(await rowsOf({ project: 'functions', function_id: '' })).toMatchObject([{ count: 4 }]);
    });

    test('if given, only that function counts, case-sensitively', async () => {
      expect(await rowsOf({ project: 'functions', function_id: 'a' })).toMatchObject([{ count: 2 }]);
    });

    test.each(['b', '%', 'null', ' ', "a' or 'a' = 'a"])(
      'an unknown function (%j) returns no rows',
      async id => {
        expect(await rowsOf({ project: 'functions', function_id: id })).toEqual([]);
      },
    );
  });

  describe('intervals', () => {
    // Interval, start of the first bucket, start of the last bucket, end of the last bucket.
    const INTERVALS = [
      ['5min', '2026-11-14T12:29:56Z', '2026-11-14T12:34:56Z', '2026-11-14T12:34:57Z'],
      ['15min', '2026-11-14T12:19:00Z', '2026-11-14T12:34:00Z', '2026-11-14T12:35:00Z'],
      ['1hr', '2026-11-14T11:34:00Z', '2026-11-14T12:34:00Z', '2026-11-14T12:35:00Z'],
      ['1day', '2026-11-13T12:00:00Z', '2026-11-14T12:00:00Z', '2026-11-14T13:00:00Z'],
      ['7day', '2026-11-07T00:00:00Z', '2026-11-14T00:00:00Z', '2026-11-15T00:00:00Z'],
    ] as const;

    test.each(INTERVALS)(
      '%s counts from the start of its first bucket to the last microsecond of the bucket of now',
      async (interval, first, last, end) => {
        const project = `edges-${interval}`;
        await app.append('function_edge', [
          functionEdgeRecord({ at: micros(first) - 1n, project, ms: 1 }),
          functionEdgeRecord({ at: micros(first), project, ms: 2 }),
          functionEdgeRecord({ at: micros(last), project, ms: 3 }),
          functionEdgeRecord({ at: micros(end) - 1n, project, ms: 4 }),
          functionEdgeRecord({ at: micros(end), project, ms: 5 }),
        ]);
        expect(await rowsOf({ project, interval })).toMatchObject([
          { timestamp: Number(micros(first)), min_execution_time: 2, max_execution_time: 2, count: 1 },
          { timestamp: Number(micros(last)), min_execution_time: 3, max_execution_time: 4, count: 2 },
        ]);
      },
    );

    describe('any other value', () => {
      // One record for each window, so that the result shows which interval was used.
      const asOneDay = ['2026-11-14T10:00:00.000Z', '2026-11-14T12:00:00.000Z'];
      beforeAll(() =>
        app.append(
          'function_edge',
          [
            '2026-11-14T12:34:00Z',
            '2026-11-14T12:00:00Z',
            '2026-11-14T10:40:00Z',
            '2026-11-10T10:00:00Z',
          ].map(at => functionEdgeRecord({ at, project: 'other' })),
        ),
      );

      test('1day returns two buckets', async () => {
        expect(await bucketsOf({ project: 'other', interval: '1day' })).toEqual(asOneDay);
      });

      test.each([
        ['empty', ''],
        ['1DAY', '1DAY'],
        ['5min preceded by a space', ' 5min'],
        ['hourly', 'hourly'],
        ['__proto__', '__proto__'],
        ['7day followed by a NUL', '7day\0'],
        ['3,000 characters', 'x'.repeat(3000)],
      ])('%s behaves like 1day', async (_, interval) => {
        expect(await bucketsOf({ project: 'other', interval })).toEqual(asOneDay);
      });

      test('an absent interval behaves like 1day', async () => {
        expect(await bucketsOf({ project: 'other' })).toEqual(asOneDay);
      });
    });

    test('5min returns up to 301 rows, one for each second', async () => {
      const start = micros('2026-11-14T12:29:55.5Z');
      const at = Array.from({ length: 303 }, (_, i) => start + BigInt(i) * 1_000_000n);
      await app.append(
        'function_edge',
        at.map(time => functionEdgeRecord({ at: time, project: 'seconds' })),
      );
      const { rows, headers } = await app.query(NAME, { project: 'seconds', interval: '5min' });
      expect(rows).toHaveLength(301);
      expect(headers.get('dendro-clipped')).toBeNull();
    });
  });

  describe('statistics', () => {
    const at = '2026-11-14T12:00:00Z';

    test('the execution times are null only in a bucket without any execution time', async () => {
      await app.append('function_edge', [
        functionEdgeRecord({ at, project: 'nulls', ms: null }),
        functionEdgeRecord({ at: '2026-11-14T11:00:00Z', project: 'nulls', ms: 0 }),
      ]);
      const statistics = (value: number | null) => ({
        min_execution_time: value,
        max_execution_time: value,
        avg_execution_time: value,
        p95_execution_time: value,
        p99_execution_time: value,
        count: 1,
      });
      expect(await rowsOf({ project: 'nulls' })).toMatchObject([statistics(0), statistics(null)]);
    });

    test('status 400 and above count as errors, 399 and an absent status do not', async () => {
      const statuses = [100, 200, 302, 399, 400, 404, 499, 500, 599, null];
      await app.append(
        'function_edge',
        statuses.map(status => functionEdgeRecord({ at, project: 'statuses', status })),
      );
      expect(await rowsOf({ project: 'statuses' })).toMatchObject([{ count: 10, error_count: 5 }]);
    });

    const repeat = (times: number, value: number) => Array.from({ length: times }, () => value);
    test.each([
      ['one record', [7]],
      ['two far apart', [1, 60_000]],
      ['one outlier in 40', [...repeat(39, 1), 60_000]],
      ['one outlier in 101', [...repeat(100, 1), 60_000]],
      ['three outliers in 101', [...repeat(98, 1), 10_000, 20_000, 60_000]],
      ['a tenth of outliers', [...repeat(45, 2), ...repeat(5, 30_000)]],
      ['doubling times', Array.from({ length: 30 }, (_, i) => 2 ** i)],
      ['a thousand with a long tail', Array.from({ length: 1000 }, (_, i) => 1e6 / (1000 - i))],
    ])('p95 and p99 are within one percentile rank of the exact values: %s', async (name, times) => {
      const project = `skewed ${name}`;
      await app.append(
        'function_edge',
        times.map(ms => functionEdgeRecord({ at, project, ms })),
      );
      const [row] = await rowsOf({ project });
      for (const percent of [95, 99]) {
        const { lowest, highest } = percentileBounds(times, percent);
        const value = row?.[`p${percent}_execution_time`];
        expect(value).toBeGreaterThanOrEqual(lowest);
        expect(value).toBeLessThanOrEqual(highest);
      }
    });
  });
});
