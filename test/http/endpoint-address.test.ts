import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { rawRequest, sendRaw } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';

const QUERY = '/api/endpoints/query';
const UUIDS = {
  'functions.invocation-stats': '32b1a47e-6418-4d0a-9647-b9694b8a7e35',
  'usage.api-counts': '0fbeca51-caaa-4f7d-83f0-8110aa708839',
  'logs.all': '36d4086c-7022-4186-9a0f-e33ec7d730da',
};

describe('the path of an endpoint', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:00:00Z' })]);
  });
  afterAll(() => app.close());

  /** Uses a raw connection because fetch would rewrite some of these paths. */
  const statusOf = async (path: string) => {
    const { status, body } = await sendRaw(app.url, rawRequest(`GET ${path}`, { 'X-API-KEY': API_KEY }));
    if (status !== 200) expect(JSON.parse(body).error.code).toBe('not_found');
    return status;
  };

  describe.each(Object.entries(UUIDS))('%s', (name, id) => {
    const call = 'project=alpha&interval=daily';

    test('returns the same by name and by UUID, in any letter case of the UUID', async () => {
      const byName = await app.get(`${QUERY}/${name}?${call}`);
      expect(byName.status).toBe(200);
      const mixed = id.replace(/[a-f]/g, (letter, at: number) =>
        at % 2 === 0 ? letter.toUpperCase() : letter,
      );
      for (const form of [id, id.toUpperCase(), mixed]) {
        const byId = await app.get(`${QUERY}/${form}?${call}`);
        expect(byId.status).toBe(200);
        expect(byId.text).toBe(byName.text);
      }
    });

    test('a percent-encoded name or UUID is decoded', async () => {
      const encoded = (text: string) => text.replace(/./g, letter => `%${letter.charCodeAt(0).toString(16)}`);
      expect(await statusOf(`${QUERY}/${encoded(name)}?${call}`)).toBe(200);
      expect(await statusOf(`${QUERY}/${encoded(id.toUpperCase()).toUpperCase()}?${call}`)).toBe(200);
      expect(await statusOf(`${QUERY}/${name.replaceAll('.', '%2E')}?${call}`)).toBe(200);
    });
  });

  test.each([
    ['another letter case', 'Logs.All'],
    ['a trailing space', 'logs.all%20'],
    ['a trailing NUL', 'logs.all%00'],
    ['encoded twice', 'logs%252Eall'],
    ['a prefix', 'logs'],
    ['a suffix', 'logs.all.csv'],
    ['a UUID without hyphens', UUIDS['logs.all'].replaceAll('-', '')],
    ['a UUID in braces', `%7B${UUIDS['logs.all']}%7D`],
    ['an encoded slash', 'logs%2Fall'],
    ['a lone percent sign', '%'],
    ['a percent sign at the end', 'logs.all%'],
    ['an incomplete escape', 'logs.all%2'],
    ['an invalid escape', 'logs.all%zz'],
    ['invalid UTF-8', '%c3%28'],
    ['half a surrogate pair', '%ed%a0%80'],
    ['a property name of objects', '__proto__'],
    ['another property name of objects', 'constructor'],
    ['a star', '*'],
    ['a plus', 'logs+all'],
  ])('names match exactly: %s is 404', async (_, name) => {
    expect(await statusOf(`${QUERY}/${name}?project=alpha`)).toBe(404);
  });

  test.each([
    [`${QUERY}`],
    [`${QUERY}/`],
    [`${QUERY}/logs.all/`],
    [`${QUERY}//logs.all`],
    [`/${QUERY}/logs.all`],
    [`${QUERY}/./logs.all`],
    [`${QUERY}/../query/logs.all`],
    ['/api/endpoints/'],
    ['/API/endpoints'],
    ['/api%2Fendpoints'],
    ['/health/'],
    ['/Health'],
    ['/openapi.yaml'],
    ['/metrics'],
    ['/api/logs'],
    ['*'],
  ])('paths match exactly: %s is 404', async path => {
    expect(await statusOf(path)).toBe(404);
  });

  test('undeclared parameters, such as sql, change nothing', async () => {
    const plain = await app.get(`${QUERY}/logs.all?project=alpha`);
    const extra =
      'sql=select+1&sql=drop&now=2000-01-01&limit=0&retention_days=0&__proto__=x&%00=%00&=&&a&%zz=%';
    expect((await app.get(`${QUERY}/logs.all?project=alpha&${extra}`)).text).toBe(plain.text);
    expect(plain.rows).toHaveLength(1);
  });

  test('parameter names match exactly', async () => {
    expect((await app.get(`${QUERY}/logs.all?Project=alpha`)).error.code).toBe('missing_parameter');
  });

  test('a question mark within the query string is part of a value', async () => {
    expect((await app.get(`${QUERY}/logs.all?project=alpha?x`)).rows).toEqual([]);
  });
});
