import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, fetchAnswer, startTestApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const post = (body: string | Uint8Array, headers: Record<string, string> = {}, query = '?source_name=edge') =>
  fetchAnswer(`${app.internalUrl}/api/logs${query}`, {
    method: 'POST',
    body,
    headers: { 'X-API-KEY': API_KEY, 'Content-Type': 'application/json', ...headers },
  });
const idsOf = async (project: string) => (await app.query('logs.all', { project })).rows.map(({ id }) => id);
const line = (project: string, id?: string) =>
  JSON.stringify({ project, message: 'hello', ...(id && { id }) });

describe('POST /api/logs', () => {
  test.each([
    ['one object', (p: string) => line(p, 'a'), 1],
    ['an array', (p: string) => `[${line(p, 'a')},${line(p, 'b')}]`, 2],
    ['a batch', (p: string) => `{"batch":[${line(p, 'a')},${line(p, 'b')}]}`, 2],
  ])('takes %s, and queries see it', async (name, bodyOf, count) => {
    const project = name.replaceAll(' ', '-');
    const { status, text } = await post(bodyOf(project));
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({ message: 'Logged!', accepted: count, rejected: 0, errors: [] });
    await expect.poll(() => idsOf(project)).toHaveLength(count);
  });

  test('takes NDJSON, packed with gzip, and tells which lines were rejected', async () => {
    const body = gzipSync(`${line('packed', 'a')}\n{broken\n\n${line('packed', 'b')}\n`);
    const headers = { 'Content-Type': 'application/x-ndjson', 'Content-Encoding': 'gzip' };
    const { status, text } = await post(body, headers);
    expect(status).toBe(200);
    const answer = JSON.parse(text);
    expect(answer).toMatchObject({ accepted: 2, rejected: 1, errors: [{ index: 1, code: 'invalid_json' }] });
    await expect.poll(() => idsOf('packed')).toHaveLength(2);
  });

  test('the same batch sent again is answered again and stored once', async () => {
    const body = `[${line('twice', 'a')},{"message":"of no project"}]`;
    const first = await post(body);
    const second = await post(body);
    expect([second.status, second.text]).toEqual([first.status, first.text]);
    await expect.poll(() => idsOf('twice')).toEqual(['a']);
  });

  test('the public listener has no intake', async () => {
    const init = { method: 'POST', body: line('p'), headers: { 'X-API-KEY': API_KEY } };
    expect((await fetchAnswer(`${app.url}/api/logs?source_name=edge`, init)).status).toBe(404);
  });
});
