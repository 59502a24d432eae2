import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { BUILT_IN, SLEEP } from '../support/custom-endpoints.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

interface EndpointFile {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly cache: unknown;
  readonly parameters: Record<string, ParameterOfFile>;
  readonly columns: Record<string, object>;
}
interface ParameterOfFile {
  readonly type: string;
  readonly required?: boolean;
  readonly description: string;
  readonly choices?: object;
  readonly fallback?: string;
}

const KEYS = ['id', 'name', 'description', 'max_rows', 'cache', 'sandboxing', 'parameters', 'columns'];

describe('GET /api/endpoints', () => {
  const custom = useEndpoints({ sleep: SLEEP });
  const app = useApp({ endpointFolders: { builtIn: BUILT_IN, custom: custom.folder } });

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
      const { id, name, description, cache, parameters, columns } = parse(yaml) as EndpointFile;
      expect(row).toEqual({
        ...{ id, name, description, max_rows: 1000, sandboxing: false },
        cache:
          cache === 'none'
            ? { lifetime_seconds: 0, warming_seconds: null }
            : { lifetime_seconds: 900, warming_seconds: 300 },
        parameters: Object.entries(parameters).map(([key, parameter]) => {
          const { type, required = false, choices, fallback = null } = parameter;
          const ofChoice = choices && { choices: Object.keys(choices), choice_values: choices, fallback };
          return { name: key, type, required, description: parameter.description, ...ofChoice };
        }),
        columns: Object.entries(columns).map(([key, column]) => ({ name: key, ...column })),
      });
    }
    const columns = rows.at(-1)?.['columns'] as { name: string }[];
    const result = await app.query('test.sleep', { milliseconds: '0' });
    expect(Object.keys(result.rows[0] ?? {})).toEqual(columns.map(({ name }) => name));
  });
});
