import { beforeAll, describe, expect, test } from 'vitest';
import type { TestResponse } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

/** Valid values of all declared parameters of each endpoint. */
const PARAMETERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'functions.invocation-stats': { project: 'alpha', function_id: 'hello', interval: '1hr' },
  'usage.api-counts': { project: 'alpha', interval: 'hourly' },
  'logs.all': {
    project: 'alpha',
    project_tier: 'PRO',
    iso_timestamp_start: '2026-11-01',
    iso_timestamp_end: '2026-12-01',
  },
};
const NAMES = Object.keys(PARAMETERS);
const DECLARED = Object.entries(PARAMETERS).flatMap(([name, parameters]) =>
  Object.keys(parameters).map(param => [name, param] as const),
);
/** Parameters that reject some values. The others accept any value, because they have a fallback. */
const WITHOUT_FALLBACK = DECLARED.filter(
  ([name, param]) =>
    param !== 'project_tier' && !(name === 'functions.invocation-stats' && param === 'interval'),
);
const TEXTS = WITHOUT_FALLBACK.filter(([, param]) => param === 'project' || param === 'function_id');

const REQUIRED = [
  ['functions.invocation-stats', 'project'],
  ['usage.api-counts', 'project'],
  ['usage.api-counts', 'interval'],
  ['logs.all', 'project'],
] as const;

describe('parameters', () => {
  const app = useApp();
  beforeAll(async () => {
    const at = '2026-11-14T12:34:00Z';
    await app.append('edge', [edgeRecord({ at, project: 'alpha' }), edgeRecord({ at, project: 'beta' })]);
    await app.append('function_edge', [
      functionEdgeRecord({ at, project: 'alpha' }),
      functionEdgeRecord({ at, project: 'beta' }),
    ]);
  });

  const call = (name: string, changes: Record<string, string> = {}) =>
    app.query(name, { ...PARAMETERS[name], ...changes });
  const callRaw = (name: string, query: string) => app.get(`/api/endpoints/query/${name}?${query}`);
  const queryOf = (name: string) => String(new URLSearchParams(PARAMETERS[name]));
  const expectRejection = ({ status, error, rows }: TestResponse, code: string, param: string) => {
    expect(status).toBe(400);
    expect(error).toEqual({ code, param, message: expect.stringContaining(param) });
    expect(rows).toBeUndefined();
  };

  test.each(NAMES)('the request for %s that these tests modify is valid', async name => {
    const { status, rows } = await call(name);
    expect(status).toBe(200);
    expect(rows).toHaveLength(1);
  });

  describe('a required parameter', () => {
    test.each(REQUIRED)('%s without %s, or with an empty one, is missing_parameter', async (name, param) => {
      const { [param]: _, ...others } = PARAMETERS[name] ?? {};
      expectRejection(await app.query(name, others), 'missing_parameter', param);
      expectRejection(await call(name, { [param]: '' }), 'missing_parameter', param);
    });

    const optional = DECLARED.filter(
      ([name, param]) => !REQUIRED.some(([n, p]) => n === name && p === param),
    );
    test.each(optional)('%s accepts an absent and an empty %s', async (name, param) => {
      const { [param]: _, ...others } = PARAMETERS[name] ?? {};
      expect((await app.query(name, others)).status).toBe(200);
      expect((await call(name, { [param]: '' })).status).toBe(200);
    });
  });

  test.each(DECLARED)('%s rejects a second %s, also an equal or an empty one', async (name, param) => {
    const value = encodeURIComponent(PARAMETERS[name]?.[param] ?? '');
    for (const query of [`${queryOf(name)}&${param}=${value}`, `${param}&${queryOf(name)}`])
      expectRejection(await callRaw(name, query), 'invalid_parameter', param);
  });

  describe('a NUL character', () => {
    test.each(WITHOUT_FALLBACK)('%s rejects a NUL character in %s', async (name, param) => {
      const value = PARAMETERS[name]?.[param] ?? '';
      expectRejection(await call(name, { [param]: `${value}\0` }), 'invalid_parameter', param);
      expectRejection(await call(name, { [param]: '\0' }), 'invalid_parameter', param);
    });
  });

  describe('the length of a value', () => {
    // An emoji is one character, two UTF-16 units and twelve bytes in a URL; 1,024 of them would exceed the URL limit.
    const mixed = (length: number) => '🦕'.repeat(500) + 'x'.repeat(length - 500);

    test.each(TEXTS)('%s accepts up to 1,024 characters in %s, and an emoji is one', async (name, param) => {
      expect((await call(name, { [param]: mixed(1024) })).status).toBe(200);
      expectRejection(await call(name, { [param]: mixed(1025) }), 'invalid_parameter', param);
      expect((await call(name, { [param]: mixed(1025) })).error.message).toContain('1024');
    });

    test('a record whose project has 1,024 characters is found by it', async () => {
      const project = mixed(1024);
      await app.append('edge', [edgeRecord({ id: 'long', at: '2026-11-14T12:34:00Z', project })]);
      expect((await app.query('logs.all', { project })).rows).toMatchObject([{ id: 'long' }]);
    });
  });

  describe('an undeclared parameter', () => {
    test.each(NAMES)(
      '%s ignores undeclared parameters, including sql, repeated and malformed ones',
      async name => {
        const plain = await call(name);
        for (const more of [
          'sql=select+1',
          'sql=drop+table+edge_logs&sql=x',
          'Project=beta&PROJECT=beta',
          'now=2000-01-01&retention_days=1&window_seconds=0&bucket_seconds=0',
          'x-api-key=nope&token=nope',
          `long=${'x'.repeat(3000)}&nul=%00&broken=%ff%`,
          '__proto__=1&constructor=2&=3&&&',
        ]) {
          const { status, text } = await callRaw(name, `${queryOf(name)}&${more}`);
          expect(status).toBe(200);
          expect(text).toBe(plain.text);
        }
      },
    );
  });

  describe('values are bound, never inserted into the SQL text', () => {
    test.each([
      "' or '1'='1",
      "alpha' --",
      "'; drop table edge_logs; --",
      '$project',
      '?',
      '%',
      'alpha\\',
      '"project"',
      'alpha/**/',
    ])('%j is an ordinary value', async value => {
      expect((await app.query('logs.all', { project: value })).text).toBe('{"result":[]}');
      expect((await app.query('functions.invocation-stats', { project: value })).text).toBe('{"result":[]}');
      expect((await call('functions.invocation-stats', { function_id: value })).text).toBe('{"result":[]}');
      expect((await call('logs.all')).rows).toHaveLength(1);
    });
  });

  test('a second ? is a part of the value', async () => {
    expect((await callRaw('logs.all', 'project=alpha?x')).rows).toEqual([]);
  });

  test('names and values are percent-decoded, and + is decoded as a space', async () => {
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:34:00Z', project: 'a b&c=dé🦕' })]);
    const { rows } = await callRaw('logs.all', '%70roject=a+b%26c%3Dd%C3%A9%F0%9F%A6%95');
    expect(rows).toHaveLength(1);
  });
});
