// What the figures of the benchmark depend on: the generated records, the comparison of results, the regression guard, and
// the format of the results file.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkThresholds, guardTable } from '../bench/guard.mjs';
import { datasetFactory } from '../bench/records/dataset.mjs';
import { createGenerator, selectChunk } from '../bench/records/generate-records.mjs';
import { formatJson, readResults } from '../bench/report/results.mjs';
import { isSameResult } from '../bench/suites/compare-systems.mjs';

const createDataset = datasetFactory(2500);
let connection: DuckDBConnection;

beforeAll(async () => {
  connection = await (await DuckDBInstance.create(':memory:')).connect();
  await createGenerator(connection, createDataset(0));
});
afterAll(() => connection.closeSync());

async function generateRecords(kind: string, perKind: number, where = 'true'): Promise<unknown[][]> {
  await selectChunk(connection, { kind, perKind, chunk: 0, chunks: 1 });
  return (await connection.runAndReadAll(`select * from ${kind}_records where ${where}`)).getRows();
}

describe.each(['edge', 'function_edge'])('generated %s records', kind => {
  test('a data set has exactly the requested number of records, with unique ids, in order of time', async () => {
    const records = await generateRecords(kind, 10_000);
    expect(records).toHaveLength(10_000);
    expect(new Set(records.map(([id]) => id)).size).toBe(10_000);
    const times = records.map(([, micros]) => micros as bigint);
    expect(times.every((time, index) => index === 0 || time >= (times[index - 1] ?? 0n))).toBe(true);
  });

  test('the metadata of every record is valid JSON', async () => {
    for (const record of await generateRecords(kind, 3_000))
      expect(() => JSON.parse(String(record[4]))).not.toThrow();
  });

  test('a fixed project has the same records in a small and in a large data set', async () => {
    for (const { project, records } of createDataset(0).fixedProjects) {
      const small = await generateRecords(kind, 3_000, `project = '${project}'`);
      expect(small).toHaveLength(records);
      expect(await generateRecords(kind, 12_000, `project = '${project}'`)).toEqual(small);
    }
  });
});

describe('comparing the results of two systems', () => {
  test('results are the same although types, key order and timestamp formats differ', () => {
    const metadata = { a: 1, b: { c: 2, d: 3 } };
    const text = '{"b":{"d":3,"c":2},"a":1}';
    expect(isSameResult('logs.all', [['id', 17, 'm', metadata]], [['id', '17', 'm', text]])).toBe(true);
    const counts = ['2026-11-15T00:00:00', 3, 0, 0, 1];
    expect(isSameResult('usage.api-counts', [counts], [['1794700800000000', '3', '0', '0', '1']])).toBe(true);
  });

  test('results differ when a value differs or a row is missing', () => {
    expect(isSameResult('logs.all', [['id', 17, 'm', {}]], [['id', 18, 'm', {}]])).toBe(false);
    expect(isSameResult('functions.invocation-stats', [[1, 2.5]], [[1, 2.6]])).toBe(false);
    expect(isSameResult('functions.invocation-stats', [[1, 2.5]], [])).toBe(false);
  });
});

describe('the regression guard', () => {
  interface CheckResult {
    figure: string;
    value: number | undefined;
    verdict: string;
  }
  const FIGURE = 'largest / smallest data set, time, worst request';
  const growth = (smallest: number[], largest: number[]) => ({
    growth: { cases: [{ label: 'a request', ms: { 1000: smallest, 30000: largest } }] },
  });
  const check = (suites: object, figure = FIGURE) =>
    (checkThresholds(suites) as CheckResult[]).find(each => each.figure === figure);

  test('a figure is computed from medians, not from the fastest sample', () => {
    expect(check(growth([10, 10, 10], [1, 12, 18]))).toMatchObject({ value: 1.2, verdict: 'passed' });
    expect(check(growth([10, 10, 10], [1, 18, 18]))).toMatchObject({ value: 1.8, verdict: 'failed' });
  });

  test('a suite that did not run, was skipped, or failed is not measured', () => {
    for (const suites of [{}, { growth: { failed: 'disk full' } }, { growth: { skipped: 'no wrk' } }])
      expect(check(suites)).toMatchObject({ value: undefined, verdict: 'not measured' });
  });

  test('a peer without figures is not measured, and the other figures of its suite are', () => {
    const cases = [{ label: 'a request', ms: { dendro: [12], duckdb: [10] } }];
    const suites = { peers: { cases, diskBytes: { dendro: 100 } } };
    for (const figure of [
      'ClickHouse / Dendro, time, median of all requests',
      'ClickHouse / Dendro, time, worst request',
      'Dendro / ClickHouse, disk usage',
    ])
      expect(check(suites, figure)).toMatchObject({ verdict: 'not measured' });
    expect(check(suites, 'Dendro / DuckDB alone, time, worst request')).toMatchObject({ verdict: 'passed' });
  });

  test('the kept results measure every figure and are within every threshold', () => {
    const { suites } = readResults(keptResultsFile());
    for (const result of checkThresholds(suites) as CheckResult[])
      expect(result).toMatchObject({ verdict: 'passed' });
  });

  test('the table shows the threshold, the measured value and the verdict of every figure', () => {
    const { rows } = guardTable(checkThresholds(growth([10], [18])));
    expect(rows).toContainEqual([FIGURE, '1.3', 'at most 1.55', '1.8', 'failed']);
    expect(rows).toContainEqual(['failed requests', '0', 'at most 0', '–', 'not measured']);
  });
});

describe('the results file', () => {
  test('every array of numbers is written on one line and reads back unchanged', () => {
    const value = { ms: { one: [1.5, -2, 3e-7], none: [] }, text: ['[\n 1,\n 2\n]', '1'], mixed: [1, 'two'] };
    const text = formatJson(value);
    expect(JSON.parse(text)).toEqual(value);
    expect(text.split('\n')).toContain('  "one": [1.5,-2,3e-7],');
  });

  test('only the latest results are kept, in the format that a run writes', () => {
    const file = keptResultsFile();
    const text = readFileSync(file, 'utf8');
    expect(text).toBe(formatJson(JSON.parse(text)));
  });
});

function keptResultsFile(): string {
  const directory = join(import.meta.dirname, '..', 'bench', 'results');
  const files = readdirSync(directory).filter(name => name.endsWith('.json'));
  expect(files).toHaveLength(1);
  return join(directory, files[0] ?? '');
}
