import { describe, expect, test } from 'vitest';
import { accept } from '../logs/validate-record.ts';
import { micros } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { percentileBounds } from '../support/reference-endpoints.ts';
import { useApp } from '../support/use-app.ts';

const NAME = 'functions.invocation-stats';

// What property.test.ts does not cover. The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('functions.invocation-stats', () => {
  const app = useApp();

  const rowsOf = async (parameters: Record<string, string>) => {
    const { status, rows } = await app.query(NAME, parameters);
    expect(status).toBe(200);
    return rows;
  };
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

  test('counts only records of the function edge log', async () => {
    const at = '2026-11-14T12:00:00Z';
    await app.append('function_edge', [functionEdgeRecord({ at, project: 'only' })]);
    await app.append('function', [record({ at, project: 'only' })]);
    await app.append('edge', [edgeRecord({ at, project: 'only' })]);
    expect(await rowsOf({ project: 'only' })).toMatchObject([{ count: 1 }]);
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

  describe('odd values', () => {
    /** Appends a record for each JSON value, and returns the row of all of them. */
    const rowOf = async (values: string, toMetadata: (value: string) => string) => {
      const project = `odd ${values}`;
      const records = (values.match(/"[^"]*"|\S+/g) ?? []).map(value =>
        accept(`{"project":${JSON.stringify(project)},"metadata":${toMetadata(value)}}`, 'function_edge'),
      );
      await app.append('function_edge', records);
      const [row = {}] = await rowsOf({ project });
      return row;
    };

    test.each([
      ['1e18 5', 5, 1e18, 5e17],
      ['-1 0 "13 "', -1, 13, 4],
      ['9.75e299', 9.75e299, 9.75e299, 9.75e299],
      ['1e400 "NaN" "soon" [1] true', null, null, null],
      ['1 1e400', 1, 1, 1],
    ])('the shortest, longest and mean of the times %s', async (values, min, max, avg) => {
      const row = await rowOf(values, value => `{"execution_time_ms":${value}}`);
      expect(row).toMatchObject({
        min_execution_time: min,
        max_execution_time: max,
        avg_execution_time: avg,
      });
    });

    test('the mean is null if the sum of the times exceeds the range of a double', async () => {
      const row = await rowOf('1e308 1.5e308', value => `{"execution_time_ms":${value}}`);
      expect(row).toMatchObject({ avg_execution_time: null, count: 2 });
      expect(row['p99_execution_time']).toBeGreaterThan(1);
    });

    test.each([
      ['2147483648 99999999999 12345678901234567890 1e400', 4],
      ['"404 " "400.0" " 500" "4e2"', 4],
      ['400.5 399.9 -2147483649 -1e400 0', 1],
      ['null true [500] {} "" "404-not-found" "0x190"', 0],
    ])('the errors among the status codes %s', async (values, errors) => {
      const row = await rowOf(values, value => `{"response":{"status_code":${value}}}`);
      expect(row).toMatchObject({ error_count: errors });
    });
  });

  const at = '2026-11-14T12:00:00Z';
  const repeat = (times: number, value: number) => Array.from({ length: times }, () => value);
  test.each([
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
