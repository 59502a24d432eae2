import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { numberRecords, openRecords } from '../bench/records/open-records.mjs';
import { makePlatforms } from '../bench/records/platform.mjs';
import { judgeGoals } from '../bench/report/goals.mjs';
import { sameAnswer } from '../bench/tools/answers.mjs';

// What the benchmark's figures rest on: the same records for everybody, and the same answers.

const makePlatform = makePlatforms(2500);
let connection: DuckDBConnection;

beforeAll(async () => {
  connection = await (await DuckDBInstance.create(':memory:')).connect();
  await openRecords(connection, makePlatform(0));
});
afterAll(() => connection.closeSync());

async function recordsOf(kind: string, perKind: number, where = 'true'): Promise<unknown[][]> {
  await numberRecords(connection, { kind, perKind, part: 0, parts: 1 });
  return (await connection.runAndReadAll(`select * from ${kind}_records where ${where}`)).getRows();
}

describe.each(['edge', 'function_edge'])('the records of kind %s', kind => {
  test('are as many as were asked for, each once, in the order of time', async () => {
    const records = await recordsOf(kind, 10_000);
    expect(records).toHaveLength(10_000);
    expect(new Set(records.map(([id]) => id)).size).toBe(10_000);
    const times = records.map(([, micros]) => micros as bigint);
    expect(times.every((time, index) => index === 0 || time >= (times[index - 1] ?? 0n))).toBe(true);
  });

  test('have metadata that is JSON', async () => {
    for (const record of await recordsOf(kind, 3_000))
      expect(() => JSON.parse(String(record[4]))).not.toThrow();
  });

  test('of a steady project are the same however large the platform is', async () => {
    for (const { project, records } of makePlatform(0).steady) {
      const small = await recordsOf(kind, 3_000, `project = '${project}'`);
      expect(small).toHaveLength(records);
      expect(await recordsOf(kind, 12_000, `project = '${project}'`)).toEqual(small);
    }
  });
});

describe('two answers', () => {
  test('are the same in whatever form they come', () => {
    const metadata = { a: 1, b: { c: 2, d: 3 } };
    const text = '{"b":{"d":3,"c":2},"a":1}';
    expect(sameAnswer('logs.all', [['id', 17, 'm', metadata]], [['id', '17', 'm', text]])).toBe(true);
    const counted = ['2026-11-15T00:00:00', 3, 0, 0, 1];
    expect(sameAnswer('usage.api-counts', [counted], [['1794700800000000', '3', '0', '0', '1']])).toBe(true);
  });

  test('differ where one value does, or where a row is missing', () => {
    expect(sameAnswer('logs.all', [['id', 17, 'm', {}]], [['id', 18, 'm', {}]])).toBe(false);
    expect(sameAnswer('functions.invocation-stats', [[1, 2.5]], [[1, 2.6]])).toBe(false);
    expect(sameAnswer('functions.invocation-stats', [[1, 2.5]], [])).toBe(false);
  });
});

describe('a goal', () => {
  const growth = (smallest: number[], largest: number[]) => ({
    growth: { cases: [{ label: 'a call', ms: { 1000: smallest, 30000: largest } }] },
  });
  const ofGrowth = (parts: object) =>
    (judgeGoals(parts) as { what: string }[]).find(({ what }) => what.startsWith('a fixed project'));

  test('is judged by medians, not by the best', () => {
    expect(ofGrowth(growth([10, 10, 10], [1, 12, 14]))).toMatchObject({ reached: true });
    expect(ofGrowth(growth([10, 10, 10], [1, 14, 14]))).toMatchObject({ reached: false });
  });

  test('whose part was left out or failed is told as not measured', () => {
    for (const parts of [{}, { growth: { failed: 'no disk' } }])
      expect(ofGrowth(parts)).toMatchObject({ figure: 'not measured', reached: undefined });
  });
});
