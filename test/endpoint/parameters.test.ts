import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, startTestApp, type TestApp } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';

// A good call of each endpoint, with every parameter that it declares.
const CALLS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'functions.invocation-stats': { project: 'alpha', function_id: 'hello', interval: '1hr' },
  'usage.api-counts': { project: 'alpha', interval: 'hourly' },
  'logs.all': {
    project: 'alpha',
    project_tier: 'PRO',
    iso_timestamp_start: '2026-11-01',
    iso_timestamp_end: '2026-12-01',
  },
};
const NAMES = Object.keys(CALLS);
const DECLARED = Object.entries(CALLS).flatMap(([name, call]) =>
  Object.keys(call).map(param => [name, param] as const),
);
/** Parameters whose values are bounded: the others behave as one of a list, whatever they are given. */
const BOUNDED = DECLARED.filter(
  ([name, param]) =>
    param !== 'project_tier' && !(name === 'functions.invocation-stats' && param === 'interval'),
);
const TEXTS = BOUNDED.filter(([, param]) => param === 'project' || param === 'function_id');

const REQUIRED = [
  ['functions.invocation-stats', 'project'],
  ['usage.api-counts', 'project'],
  ['usage.api-counts', 'interval'],
  ['logs.all', 'project'],
] as const;

describe('parameters', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
    const at = '2026-11-14T12:34:00Z';
    await app.append('edge', [edgeRecord({ at, project: 'alpha' }), edgeRecord({ at, project: 'beta' })]);
    await app.append('function_edge', [
      functionEdgeRecord({ at, project: 'alpha' }),
      functionEdgeRecord({ at, project: 'beta' }),
    ]);
  });
  afterAll(() => app.close());

  const call = (name: string, changes: Record<string, string> = {}) =>
    app.query(name, { ...CALLS[name], ...changes });
  const callRaw = (name: string, query: string) => app.get(`/api/endpoints/query/${name}?${query}`);
  const queryOf = (name: string) => String(new URLSearchParams(CALLS[name]));
  const expectRefusal = ({ status, error, rows }: Answer, code: string, param: string) => {
    expect(status).toBe(400);
    expect(error).toEqual({ code, param, message: expect.stringContaining(param) });
    expect(rows).toBeUndefined();
  };

  test.each(NAMES)('the call of %s that these tests change is a good one', async name => {
    const { status, rows } = await call(name);
    expect(status).toBe(200);
    expect(rows).toHaveLength(1);
  });

  describe('required', () => {
    test.each(REQUIRED)('%s without %s: missing_parameter', async (name, param) => {
      const { [param]: _, ...others } = CALLS[name] ?? {};
      expectRefusal(await app.query(name, others), 'missing_parameter', param);
    });

    test.each(REQUIRED)('%s with an empty %s: missing_parameter', async (name, param) => {
      expectRefusal(await call(name, { [param]: '' }), 'missing_parameter', param);
    });

    const optional = DECLARED.filter(
      ([name, param]) => !REQUIRED.some(([n, p]) => n === name && p === param),
    );
    test.each(optional)('%s does without %s, and takes it empty', async (name, param) => {
      const { [param]: _, ...others } = CALLS[name] ?? {};
      expect((await app.query(name, others)).status).toBe(200);
      expect((await call(name, { [param]: '' })).status).toBe(200);
    });
  });

  describe('given twice', () => {
    test.each(DECLARED)('%s refuses a second %s', async (name, param) => {
      expectRefusal(await callRaw(name, `${queryOf(name)}&${param}=other`), 'invalid_parameter', param);
    });

    test.each(DECLARED)('%s refuses a second %s that is the same', async (name, param) => {
      const value = encodeURIComponent(CALLS[name]?.[param] ?? '');
      expectRefusal(await callRaw(name, `${queryOf(name)}&${param}=${value}`), 'invalid_parameter', param);
    });

    test.each(DECLARED)('%s refuses a second %s that is empty', async (name, param) => {
      expectRefusal(await callRaw(name, `${param}&${queryOf(name)}`), 'invalid_parameter', param);
    });
  });

  describe('NUL', () => {
    test.each(BOUNDED)('%s refuses one in %s', async (name, param) => {
      const value = CALLS[name]?.[param] ?? '';
      expectRefusal(await call(name, { [param]: `${value}\0` }), 'invalid_parameter', param);
      expectRefusal(await call(name, { [param]: '\0' }), 'invalid_parameter', param);
    });
  });

  describe('length', () => {
    // An emoji is one character, two UTF-16 units and twelve bytes of a URL; 1,024 of them would not fit into one.
    const mixed = (length: number) => '🦕'.repeat(500) + 'x'.repeat(length - 500);

    test.each(TEXTS)('%s takes 1,024 characters as %s, and no more', async (name, param) => {
      expect((await call(name, { [param]: 'x'.repeat(1024) })).status).toBe(200);
      expectRefusal(await call(name, { [param]: 'x'.repeat(1025) }), 'invalid_parameter', param);
    });

    test.each(TEXTS)('%s counts an emoji in %s as one character', async (name, param) => {
      expect((await call(name, { [param]: mixed(1024) })).status).toBe(200);
      expectRefusal(await call(name, { [param]: mixed(1025) }), 'invalid_parameter', param);
    });

    test('the limit is told', async () => {
      expect((await call('logs.all', { project: 'x'.repeat(1025) })).error.message).toContain('1024');
    });

    test('a record whose project has 1,024 characters is found by it', async () => {
      const project = mixed(1024);
      await app.append('edge', [edgeRecord({ id: 'long', at: '2026-11-14T12:34:00Z', project })]);
      expect((await app.query('logs.all', { project })).rows).toMatchObject([{ id: 'long' }]);
    });
  });

  describe('not declared', () => {
    test.each(NAMES)(
      '%s ignores what it does not declare, sql among it, also given twice or odd',
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

  describe('bound, never spliced', () => {
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
    ])('%j is a value like any other', async value => {
      expect((await app.query('logs.all', { project: value })).text).toBe('{"result":[]}');
      expect((await app.query('functions.invocation-stats', { project: value })).text).toBe('{"result":[]}');
      expect((await call('functions.invocation-stats', { function_id: value })).text).toBe('{"result":[]}');
      expect((await call('logs.all')).rows).toHaveLength(1);
    });
  });

  test('names are percent-decoded, values too, and + is a space', async () => {
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:34:00Z', project: 'a b&c=dé🦕' })]);
    const { rows } = await callRaw('logs.all', '%70roject=a+b%26c%3Dd%C3%A9%F0%9F%A6%95');
    expect(rows).toHaveLength(1);
  });
});
