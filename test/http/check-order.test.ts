import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const LOGS_ALL_ID = '36d4086c-7022-4186-9a0f-e33ec7d730da';
const API_COUNTS_ID = '0fbeca51-caaa-4f7d-83f0-8110aa708839';

// A request with several errors gets the first of: path, method, token, endpoint, scope, parameters.
describe('the order of checks', () => {
  let tokens: TestTokens<'all' | 'logs' | 'machine'>;
  let app: TestApp;
  beforeAll(async () => {
    tokens = await createTokens({
      all: { scopes: ['query'] },
      logs: { scopes: ['query:logs.all'] },
      machine: { scopes: ['ingest', 'metrics'] },
    });
    app = await startTestApp({ tokensFile: tokens.file });
  });
  afterAll(async () => {
    await app.close();
    tokens.remove();
  });

  const send = (path: string, token: keyof typeof tokens.secrets | 'none' | 'wrong', method = 'GET') => {
    const secret = { none: '', wrong: 'dnd_wrong', ...tokens.secrets }[token];
    return app.get(path, { method, headers: { 'X-API-KEY': secret } });
  };

  test('path before method: POST to an unknown path is 404', async () => {
    expect((await send('/api/endpoints/query', 'none', 'POST')).status).toBe(404);
  });

  test('method before token: DELETE without a token is 405', async () => {
    expect((await send('/api/endpoints/query/logs.all', 'none', 'DELETE')).status).toBe(405);
  });

  test('path before token: an unknown path without a token is 404', async () => {
    expect((await send('/api/unknown', 'none')).status).toBe(404);
  });

  test.each(['none', 'wrong'] as const)(
    'token (%s) before endpoint: an unknown endpoint is 401',
    async token => {
      expect((await send('/api/endpoints/query/no.such', token)).status).toBe(401);
    },
  );

  test.each(['none', 'wrong'] as const)('token (%s) before parameters: a bad value is 401', async token => {
    expect((await send('/api/endpoints/query/logs.all?iso_timestamp_end=x&format=xml', token)).status).toBe(
      401,
    );
  });

  test('endpoint before parameters: an unknown endpoint with bad parameters is 404', async () => {
    expect((await send('/api/endpoints/query/no.such?format=xml', 'all')).status).toBe(404);
  });

  test('scope before parameters: a forbidden endpoint with bad parameters is 403', async () => {
    const { status, error } = await send('/api/endpoints/query/usage.api-counts?format=xml', 'logs');
    expect(status).toBe(403);
    expect(error.code).toBe('forbidden');
  });

  test('parameters last: a token with the scope gets 400 for bad parameters', async () => {
    expect((await send('/api/endpoints/query/logs.all?iso_timestamp_end=x', 'logs')).status).toBe(400);
  });

  describe('a token limited to one endpoint', () => {
    test.each([['logs.all'], [LOGS_ALL_ID], [LOGS_ALL_ID.toUpperCase()], ['logs%2Eall']])(
      'may call that endpoint as %s',
      async name => {
        expect((await send(`/api/endpoints/query/${name}?project=a`, 'logs')).status).toBe(200);
      },
    );

    test.each([
      ['usage.api-counts'],
      [API_COUNTS_ID],
      ['no.such'],
      ['logs'],
      ['logs.all.more'],
      ['logs.al'],
      ['LOGS.ALL'],
      ['logs.all%3Amore'],
      ['logs.all%20'],
      ['%zz'],
      ['00000000-0000-4000-8000-000000000000'],
    ])('gets 403 for every other name, existing or not: %s', async name => {
      const { status, text } = await send(`/api/endpoints/query/${name}?project=a&interval=daily`, 'logs');
      expect(status).toBe(403);
      expect(text).toBe((await send('/api/endpoints/query/no.such', 'logs')).text);
    });

    test('sees only that endpoint in the catalog', async () => {
      const { rows } = await send('/api/endpoints', 'logs');
      expect(rows.map(row => row['name'])).toEqual(['logs.all']);
    });
  });

  test.each(['/api/endpoints', '/api/endpoints/query/logs.all?project=a', '/api/endpoints/query/no.such'])(
    'a token without the scope query gets 403 at %s',
    async path => {
      expect((await send(path, 'machine')).status).toBe(403);
    },
  );
});
