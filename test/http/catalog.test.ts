import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { BUILT_IN, SLEEP } from '../support/custom-endpoints.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

type EndpointFile = { description: string; columns: Record<string, object> };

const KEYS = ['id', 'name', 'description', 'max_rows', 'cache', 'sandboxing', 'parameters', 'columns'];

describe('GET /api/endpoints', () => {
  const custom = useEndpoints({ sleep: SLEEP });
  const app = useApp({ endpointFolders: { builtIn: BUILT_IN, custom: custom.folder } });

  const entry = async (name: string) => {
    const { rows } = await app.get('/api/endpoints');
    return rows.find(row => row['name'] === name);
  };

  test('lists every endpoint that the token may call, as in its definition, without SQL and file names', async () => {
    const { status, headers, text, rows } = await app.get('/api/endpoints');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(Object.keys(JSON.parse(text))).toEqual(['result']);
    expect(rows.map(row => row['name'])).toEqual([
      'functions.invocation-stats',
      'logs.all',
      'usage.api-counts',
      'test.sleep',
    ]);
    for (const row of rows) expect(Object.keys(row)).toEqual(KEYS);
    expect(text).not.toMatch(/select\b.*\bfrom\b|\.sql|sleep_ms/i);
    expect(text).not.toContain(custom.folder);
    for (const row of rows.slice(0, 3)) {
      const yaml = readFileSync(join(BUILT_IN, String(row['name']), 'endpoint.yaml'), 'utf8');
      const { description, columns } = parse(yaml) as EndpointFile;
      const described = Object.entries(columns).map(([name, rest]) => ({ name, ...rest }));
      expect([row['description'], row['columns']]).toEqual([description, described]);
    }
    const columns = rows.at(-1)?.['columns'] as { name: string }[];
    const result = await app.query('test.sleep', { milliseconds: '0' });
    expect(Object.keys(result.rows[0] ?? {})).toEqual(columns.map(({ name }) => name));
  });

  test('returns the exact description of logs.all', async () => {
    expect(await entry('logs.all')).toEqual({
      id: '36d4086c-7022-4186-9a0f-e33ec7d730da',
      name: 'logs.all',
      description: expect.stringContaining('log records of one project'),
      max_rows: 1000,
      cache: { lifetime_seconds: 0, warming_seconds: null },
      sandboxing: false,
      parameters: [
        { name: 'project', type: 'text', required: true, description: expect.any(String) },
        {
          name: 'project_tier',
          type: 'choice',
          required: false,
          description: expect.any(String),
          choices: ['FREE', 'PRO', 'PAYG', 'ENTERPRISE'],
          choice_values: {
            FREE: { retention_days: 1 },
            PRO: { retention_days: 7 },
            PAYG: { retention_days: 90 },
            ENTERPRISE: { retention_days: 90 },
          },
          fallback: 'FREE',
        },
        { name: 'iso_timestamp_start', type: 'timestamp', required: false, description: expect.any(String) },
        { name: 'iso_timestamp_end', type: 'timestamp', required: false, description: expect.any(String) },
      ],
      columns: [
        { name: 'id', type: 'text', nullable: false, description: expect.any(String) },
        { name: 'timestamp', type: 'unix_microseconds', nullable: false, description: expect.any(String) },
        { name: 'event_message', type: 'text', nullable: false, description: expect.any(String) },
        { name: 'metadata', type: 'json', nullable: false, description: expect.any(String) },
      ],
    });
  });

  test.each([
    [
      'functions.invocation-stats',
      '32b1a47e-6418-4d0a-9647-b9694b8a7e35',
      ['project', 'function_id', 'interval'],
    ],
    ['usage.api-counts', '0fbeca51-caaa-4f7d-83f0-8110aa708839', ['project', 'interval']],
  ])('%s: fixed UUID, 1000 rows, cached for 900 s, warmed every 300 s', async (name, id, parameters) => {
    const found = await entry(name);
    expect(found).toMatchObject({
      id,
      max_rows: 1000,
      cache: { lifetime_seconds: 900, warming_seconds: 300 },
      sandboxing: false,
      parameters: parameters.map(parameter => expect.objectContaining({ name: parameter })),
    });
  });

  test('a choice without a fallback has fallback: null', async () => {
    const found = await entry('usage.api-counts');
    expect(found?.['parameters']).toContainEqual({
      name: 'interval',
      type: 'choice',
      required: true,
      description: expect.any(String),
      choices: ['minutely', 'hourly', 'daily'],
      choice_values: {
        minutely: { window_seconds: 3600, bucket_seconds: 60 },
        hourly: { window_seconds: 3600, bucket_seconds: 3600 },
        daily: { window_seconds: 604800, bucket_seconds: 86400 },
      },
      fallback: null,
    });
  });
});
