import { beforeAll, describe, expect, test } from 'vitest';
import type { Explanation } from '../../src/endpoint/explain.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useTokens } from '../support/use-app.ts';

// `npm test` runs these tests on DuckDB, `npm run test:clickhouse` on ClickHouse. The clock is fixed at
// 2026-11-14T12:34:56.789012Z.
describe('GET /api/endpoints/explain', () => {
  const tokens = useTokens({ alpha: { projects: ['alpha'] }, free: {}, proOnly: { tier: 'PRO' } });
  const app = useApp({ tokensFile: tokens.file });
  beforeAll(async () => {
    const edge = (project: string, at: string, path = '/rest/v1') => edgeRecord({ project, at, path });
    await app.append('edge', [
      edge('alpha', '2026-11-01T00:00:00.000001Z'),
      edge('alpha', '2026-11-10T00:00:00Z'),
      edge('alpha', '2026-11-14T09:00:00Z'),
      edge('alpha', '2026-11-14T12:00:00Z', '/auth/v1'),
      edge('alpha', '2026-11-14T12:30:00.654321Z'),
      ...Array.from({ length: 1_234 }, () => edge('old', '2026-11-02T03:04:05Z')),
      edge('single', '2026-11-12T00:00:00Z'),
      edge('beta', '2026-11-14T12:34:00Z'),
      edge('beta', '2026-09-01T00:00:00Z'),
      edge('boundary', '2026-11-13T12:34:56.789012Z'),
      edge('boundary', '2026-11-13T12:34:56.789013Z'),
    ]);
    const invocation = (project: string, functionId: string, at: string) =>
      functionEdgeRecord({ project, functionId, at });
    await app.append('function_edge', [
      invocation('alpha', 'hello', '2026-11-14T12:30:00Z'),
      invocation('alpha', 'bye', '2026-11-14T12:31:00Z'),
      invocation('alpha', 'hello', '2026-11-01T00:00:00Z'),
      invocation('single', 'hello', '2026-11-14T12:30:00Z'),
      invocation('future', 'hello', '2026-11-14T13:30:00Z'),
      invocation('gap', 'hello', '2026-11-14T13:30:00Z'),
      invocation('gap', 'hello', '2026-11-01T00:00:00Z'),
    ]);
  });

  const explain = async (
    name: string,
    parameters: Record<string, string>,
    token: keyof typeof tokens.secrets = 'free',
  ): Promise<Explanation> => {
    const { status, text } = await app.get(
      `/api/endpoints/explain/${name}?${new URLSearchParams(parameters)}`,
      {
        headers: { 'X-API-KEY': tokens.secrets[token] },
      },
    );
    expect({ status, text }).toMatchObject({ status: 200 });
    return JSON.parse(text).result;
  };
  const summaryOf = async (name: string, parameters: Record<string, string>) =>
    (await explain(name, parameters)).summary;

  test('logs.all: counts the records after the project, the retention and the range', async () => {
    expect(
      await explain('logs.all', {
        project: 'alpha',
        project_tier: 'PRO',
        iso_timestamp_start: '2026-11-14T09:00:00+00:00',
        iso_timestamp_end: '2026-11-14T12:00:00Z',
        unknown: 'ignored',
      }),
    ).toEqual({
      parameters: {
        project: 'alpha',
        project_tier: 'PRO',
        iso_timestamp_start: '2026-11-14T09:00:00Z',
        iso_timestamp_end: '2026-11-14T12:00:00Z',
      },
      window: { start: '2026-11-14T09:00:00Z', end: '2026-11-14T12:00:00Z' },
      newest: '2026-11-14T12:30:00.654321Z',
      oldest: '2026-11-01T00:00:00.000001Z',
      conditions: [
        { name: 'project', remaining: 5 },
        { name: 'retention', remaining: 4 },
        { name: 'range', remaining: 1 },
      ],
      summary: '1 record matches all conditions',
    });
  });

  test('logs.all: without a range, the window starts at the retention and has no end', async () => {
    const explanation = await explain('logs.all', { project: 'boundary', project_tier: 'unknown' });
    expect(explanation).toEqual({
      parameters: {
        project: 'boundary',
        project_tier: 'FREE',
        iso_timestamp_start: null,
        iso_timestamp_end: null,
      },
      window: { start: '2026-11-13T12:34:56.789012Z', end: null },
      newest: '2026-11-13T12:34:56.789013Z',
      oldest: '2026-11-13T12:34:56.789012Z',
      conditions: [
        { name: 'project', remaining: 2 },
        { name: 'retention', remaining: 1 },
      ],
      summary: '1 record matches all conditions',
    });
  });

  test("logs.all: a tier above the token's maximum is explained as that maximum", async () => {
    const { parameters, window } = await explain(
      'logs.all',
      { project: 'old', project_tier: 'ENTERPRISE' },
      'proOnly',
    );
    expect(parameters['project_tier']).toBe('PRO');
    expect(window.start).toBe('2026-11-07T12:34:56.789012Z');
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'all records are older than the retention',
      { project: 'old' },
      "0 rows: 1,234 records of this project match, all older than the FREE tier's 1 day",
    ],
    [
      'all records are older than a retention of several days',
      { project: 'old', project_tier: 'PRO' },
      "0 rows: 1,234 records of this project match, all older than the PRO tier's 7 days",
    ],
    [
      'the only record is older than the retention',
      { project: 'single' },
      "0 rows: 1 record of this project matches, but it is older than the FREE tier's 1 day",
    ],
    [
      'the project has no records',
      { project: 'nobody' },
      '0 rows: the store has no edge records of this project',
    ],
    [
      'all records are older than the range',
      { project: 'single', project_tier: 'PRO', iso_timestamp_start: '2026-11-13' },
      "0 rows: 1 record of this project within the PRO tier's 7 days matches, but it is older than the start of the requested range, 2026-11-13T00:00:00Z",
    ],
    [
      'all records are newer than the range',
      { project: 'old', project_tier: 'PAYG', iso_timestamp_end: '2026-11-02' },
      "0 rows: 1,234 records of this project within the PAYG tier's 90 days match, all newer than the end of the requested range, 2026-11-02T00:00:00Z",
    ],
    [
      'some records are older and some are newer than the range',
      {
        project: 'alpha',
        project_tier: 'PAYG',
        iso_timestamp_start: '2026-11-02',
        iso_timestamp_end: '2026-11-03',
      },
      "0 rows: of 5 records of this project within the PAYG tier's 90 days, none is in the requested range",
    ],
    ['records match', { project: 'old', project_tier: 'PAYG' }, '1,234 records match all conditions'],
  ])('logs.all: the summary if %s', async (_, parameters, summary) => {
    expect(await summaryOf('logs.all', parameters)).toBe(summary);
  });

  test('functions.invocation-stats: counts the records after the project, the window and the function', async () => {
    const parameters = { project: 'alpha', function_id: 'hello', interval: '1hr' };
    expect(await explain('functions.invocation-stats', parameters)).toEqual({
      parameters,
      window: { start: '2026-11-14T11:34:00Z', end: '2026-11-14T12:35:00Z' },
      newest: '2026-11-14T12:31:00Z',
      oldest: '2026-11-01T00:00:00Z',
      conditions: [
        { name: 'project', remaining: 3 },
        { name: 'window', remaining: 2 },
        { name: 'function', remaining: 1 },
      ],
      summary: '1 record matches all conditions',
    });
  });

  test('functions.invocation-stats: without a function, that condition is left out', async () => {
    const { parameters, conditions, summary } = await explain('functions.invocation-stats', {
      project: 'alpha',
      interval: 'bogus',
    });
    expect(parameters).toEqual({ project: 'alpha', function_id: null, interval: '1day' });
    expect(conditions).toEqual([
      { name: 'project', remaining: 3 },
      { name: 'window', remaining: 2 },
    ]);
    expect(summary).toBe('2 records match all conditions');
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'no record is of the function',
      { project: 'alpha', function_id: 'nothing' },
      '0 rows: of 2 records of this project in the time window, none is of this function',
    ],
    [
      'the only record is of another function',
      { project: 'single', function_id: 'nothing' },
      '0 rows: the only record of this project in the time window is not of this function',
    ],
    [
      'the only record is newer than the window',
      { project: 'future', interval: '5min' },
      '0 rows: 1 record of this project matches, but it is newer than the end of the time window, 2026-11-14T12:34:57Z',
    ],
    [
      'one record is older and one is newer than the window',
      { project: 'gap', interval: '5min' },
      '0 rows: of 2 records of this project, none is in the time window',
    ],
  ])('functions.invocation-stats: the summary if %s', async (_, parameters, summary) => {
    expect(await summaryOf('functions.invocation-stats', parameters)).toBe(summary);
  });

  const LAST_HOUR = { start: '2026-11-14T11:34:56.789012Z', end: '2026-11-14T12:34:56.789012Z' };

  test('usage.api-counts: without a pin, the conditions are the window and the pattern', async () => {
    const parameters = { project: 'alpha\\.example/auth', interval: 'hourly' };
    expect(await explain('usage.api-counts', parameters)).toEqual({
      parameters,
      window: LAST_HOUR,
      newest: '2026-11-14T12:34:00Z',
      oldest: '2026-09-01T00:00:00Z',
      conditions: [
        { name: 'window', remaining: 3 },
        { name: 'pattern', remaining: 1 },
      ],
      summary: '1 record matches all conditions',
    });
    expect(await summaryOf('usage.api-counts', { project: '^nothing$', interval: 'hourly' })).toBe(
      '0 rows: of 3 records in the time window, none has a URL that matches the pattern',
    );
  });

  test('usage.api-counts: a pinned token gets counts and times of its own project only', async () => {
    const parameters = { project: 'alpha', interval: 'hourly' };
    expect(await explain('usage.api-counts', parameters, 'alpha')).toEqual({
      parameters,
      window: LAST_HOUR,
      newest: '2026-11-14T12:30:00.654321Z',
      oldest: '2026-11-01T00:00:00.000001Z',
      conditions: [
        { name: 'project', remaining: 5 },
        { name: 'window', remaining: 2 },
        { name: 'pattern', remaining: 2 },
      ],
      summary: '2 records match all conditions',
    });
  });

  test('an explanation is of the present: it is not cached', async () => {
    const parameters = { project: 'growing', interval: 'hourly' };
    const countOf = async () => (await explain('usage.api-counts', parameters)).conditions.at(-1)?.remaining;
    expect(await countOf()).toBe(0);
    await app.append('edge', [edgeRecord({ project: 'growing', at: '2026-11-14T12:33:00Z' })]);
    expect(await countOf()).toBe(1);
  });

  test('as many records remain after the last condition as the endpoint counts', async () => {
    for (const interval of ['5min', '15min', '1hr', '1day', '7day'])
      for (const function_id of ['', 'hello']) {
        const parameters = { project: 'alpha', interval, function_id };
        const { rows } = await app.query('functions.invocation-stats', parameters);
        const counted = rows.reduce((sum, row) => sum + Number(row['count']), 0);
        const { conditions } = await explain('functions.invocation-stats', parameters);
        expect(conditions.at(-1)?.remaining, interval).toBe(counted);
      }
  });
});
