import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { rawRequest, sendRaw } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const QUERY = '/api/endpoints/query';
const UUIDS = {
  'functions.invocation-stats': '32b1a47e-6418-4d0a-9647-b9694b8a7e35',
  'usage.api-counts': '0fbeca51-caaa-4f7d-83f0-8110aa708839',
  'logs.all': '36d4086c-7022-4186-9a0f-e33ec7d730da',
};

describe('the path of an endpoint', () => {
  const app = useApp();
  beforeAll(async () => {
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:00:00Z' })]);
  });

  /** Uses a raw connection because fetch would rewrite some of these paths. */
  const statusOf = async (path: string) => {
    const { status, body } = await sendRaw(app.url, rawRequest(`GET ${path}`, { 'X-API-KEY': API_KEY }));
    if (status !== 200) expect(JSON.parse(body).error.code).toBe('not_found');
    return status;
  };

  test.each(Object.entries(UUIDS))(
    '%s: name and UUID, in any letter case or percent-encoded, are the same',
    async (name, id) => {
      const call = 'project=alpha&interval=daily';
      const encoded = (text: string) => text.replace(/./g, letter => `%${letter.charCodeAt(0).toString(16)}`);
      const mixed = id.replace(/[a-f]/g, (letter, at: number) =>
        at % 2 === 0 ? letter.toUpperCase() : letter,
      );
      const byName = await app.get(`${QUERY}/${name}?${call}`);
      expect(byName.status).toBe(200);
      const forms = [id, id.toUpperCase(), mixed, encoded(name), encoded(id.toUpperCase()).toUpperCase()];
      for (const form of [...forms, name.replaceAll('.', '%2E')])
        expect((await app.get(`${QUERY}/${form}?${call}`)).text).toBe(byName.text);
    },
  );

  test('names match exactly: any other is 404', async () => {
    const uuid = UUIDS['logs.all'];
    const similar = [
      'Logs.All',
      'logs.all%20',
      'logs.all%00',
      'logs%252Eall',
      'logs',
      'logs.all.csv',
      'logs%2Fall',
    ];
    const malformed = [
      '%',
      'logs.all%2',
      'logs.all%zz',
      '%c3%28',
      '%ed%a0%80',
      '__proto__',
      'constructor',
      '*',
      'logs+all',
    ];
    for (const name of [...similar, ...malformed, uuid.replaceAll('-', ''), `%7B${uuid}%7D`])
      expect(await statusOf(`${QUERY}/${name}?project=alpha`), name).toBe(404);
  });

  test('paths match exactly: any other is 404', async () => {
    const ofQuery = ['', '/', '/logs.all/', '//logs.all', '/./logs.all', '/../query/logs.all'].map(
      rest => QUERY + rest,
    );
    const others = [
      '/api/endpoints/',
      '/API/endpoints',
      '/api%2Fendpoints',
      '/health/',
      '/Health',
      '/openapi.yaml',
    ];
    for (const path of [...ofQuery, `/${QUERY}/logs.all`, ...others, '/metrics', '/api/logs', '*'])
      expect(await statusOf(path), path).toBe(404);
  });
});
