import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, NOW, startTestApp, type TestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const REQUESTS = 50_000;
const REQUESTS_A_BATCH = 1000;
const CONNECTIONS = 4;

type TokenName = 'logs' | 'pinned' | 'expired' | 'machine';

interface Sent {
  readonly bytes: Buffer;
  readonly isHead: boolean;
  /** Whether the headers have a token that may see rows. */
  readonly isTrusted: boolean;
  readonly isPinned: boolean;
}

/** 200 ms pass whenever the time is read, so the auth throttle delays no response to these pipelined requests. */
class FastTimer extends ManualTimer {
  #reads = 0;

  override now(): number {
    return super.now() + 200 * ++this.#reads;
  }
}

describe(`${REQUESTS} random requests with all kinds of tokens`, () => {
  let tokens: TestTokens<TokenName>;
  let app: TestApp;
  beforeAll(async () => {
    tokens = await createTokens({
      logs: { scopes: ['query:logs.all'], redact_pii: true },
      pinned: { projects: ['alpha'] },
      expired: { expires_at: '2026-11-14T12:34:56Z' },
      machine: { scopes: ['ingest', 'metrics'] },
    });
    app = await startTestApp({ tokensFile: tokens.file, cacheBytes: 16 * 1024 * 1024 }, new FastTimer());
    const at = '2026-11-14T12:30:00Z';
    await app.append('edge', [
      edgeRecord({ at, message: 'ROW of alpha' }),
      edgeRecord({ at, project: 'beta', message: 'ROW THEIRS', metadata: { theirs: 'THEIRS' } }),
    ]);
    await app.append('function_edge', [
      functionEdgeRecord({ at }),
      functionEdgeRecord({ at, project: 'beta' }),
    ]);
  });
  afterAll(async () => {
    await app.close();
    tokens.remove();
  });

  /** Pipelines all requests on one connection and reads the responses in order. */
  const pipeline = (requests: readonly Sent[]): Promise<{ status: number; text: string }[]> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(app.url);
      const socket = connect({ host: hostname, port: Number(port) });
      const responses: { status: number; text: string }[] = [];
      let arrived = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        arrived = Buffer.concat([arrived, chunk]);
        for (;;) {
          const response = takeAnswer(arrived, requests[responses.length]?.isHead ?? false);
          if (response === undefined) break;
          arrived = arrived.subarray(response.length);
          responses.push(response);
        }
        if (responses.length < requests.length) return;
        socket.destroy();
        resolve(responses);
      });
      socket.on('error', reject);
      socket.on('close', () => {
        const sent = requests[responses.length]?.bytes.toString('latin1');
        reject(new Error(`closed after ${responses.length} of ${requests.length} responses, at: ${sent}`));
      });
      socket.write(Buffer.concat(requests.map(({ bytes }) => bytes)));
    });

  test('random requests cause no 5xx and no crash, return no row for a wrong token and no foreign row for a pinned one', {
    timeout: 180_000,
  }, async () => {
    const seen = new Map<number, number>();
    let withRows = 0;
    const check = (
      { bytes, isTrusted, isPinned }: Sent,
      { status, text }: { status: number; text: string },
    ) => {
      seen.set(status, (seen.get(status) ?? 0) + 1);
      const hasRows = /ROW|"(total_rest_requests|error_count)":\d|^timestamp,/m.test(text);
      if (hasRows) withRows++;
      const fault =
        (status >= 500 && `${status}`) ||
        (hasRows && !isTrusted && 'rows for a wrong token') ||
        (isPinned && text.includes('THEIRS') && "another project's rows") ||
        (text.includes(API_KEY) && 'the response contains a token');
      if (fault) throw new Error(`${fault}: ${text}\nfor: ${bytes.toString('latin1')}`);
    };
    const request = arbitraryRequest(tokens.secrets);
    const batch = fc.array(request, {
      minLength: REQUESTS_A_BATCH,
      maxLength: REQUESTS_A_BATCH,
      size: 'max',
    });
    const property = fc.asyncProperty(batch, async requests => {
      const share = REQUESTS_A_BATCH / CONNECTIONS;
      const lanes = Array.from({ length: CONNECTIONS }, (_, i) => requests.slice(i * share, (i + 1) * share));
      let isOver = false;
      const pending = Promise.allSettled(lanes.map(pipeline)).finally(() => {
        isOver = true;
      });
      for (let minutes = 0; !isOver; minutes++) {
        if (minutes > 100_000) throw new Error('some responses never arrived'); // instead of waiting forever
        await app.pass(60_000);
        app.setNow(NOW);
      }
      for (const [i, lane] of (await pending).entries()) {
        if (lane.status === 'rejected') throw lane.reason;
        for (const [j, response] of lane.value.entries()) {
          const sent = lanes[i]?.[j];
          if (sent !== undefined) check(sent, response);
        }
      }
    });
    // No shrinking, which would send whole batches repeatedly; the message names the failing request.
    await fc.assert(property, { numRuns: REQUESTS / REQUESTS_A_BATCH, endOnFailure: true });

    expect([...seen.values()].reduce((sum, count) => sum + count, 0)).toBe(REQUESTS);
    // The requests covered the relevant cases: some returned rows, others every kind of error.
    expect(withRows).toBeGreaterThan(500);
    for (const status of [200, 400, 401, 403, 404, 405])
      expect(seen.get(status) ?? 0, `${status}`).toBeGreaterThan(100);
    expect(app.events.filter(event => event.type === 'request_failed')).toEqual([]);
    expect((await app.query('logs.all', { project: 'alpha' })).rows).toHaveLength(1);
  });
});

function takeAnswer(
  bytes: Buffer,
  isHead: boolean,
): { status: number; text: string; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const status = Number(head.slice(9, 12));
  const bodyLength = isHead || status === 304 ? 0 : Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
  const length = headEnd + 4 + bodyLength;
  if (bytes.length < length) return undefined;
  return { status, text: bytes.toString('utf8', headEnd + 4, length), length };
}

/** Text that is valid in a header: no line ends, one byte per character. */
const headerText = fc
  .string({
    unit: fc.integer({ min: 0x21, max: 0xff }).map(code => String.fromCharCode(code)),
    maxLength: 40,
  })
  .map(text => text.replace(/\x7f/g, '~'));
const targetText = fc
  .string({ unit: fc.constantFrom(...'abz09._-~%/?&=+:;@!$\'()*,|^[]{}"<>`\\é\u0080'), maxLength: 40 })
  .map(text => text.replace(/é/g, '%C3%A9').replace(/\u0080/g, '%00'));

function arbitraryRequest(secrets: Readonly<Record<TokenName, string>>): fc.Arbitrary<Sent> {
  const name = fc.constantFrom(
    'logs.all',
    'usage.api-counts',
    'functions.invocation-stats',
    '36d4086c-7022-4186-9a0f-e33ec7d730da',
    '0FBECA51-CAAA-4F7D-83F0-8110AA708839',
    'logs%2Eall',
    'logs.all%00',
    'logs.all:x',
    'no.such',
    '%',
    '..',
  );
  const path = fc.oneof(
    { weight: 6, arbitrary: name.map(text => `/api/endpoints/query/${text}`) },
    { weight: 1, arbitrary: targetText.map(text => `/${text}`) },
    { weight: 1, arbitrary: fc.constantFrom('/api/endpoints', '/health', '/openapi.json', '/', '//', '*') },
  );
  const pair = fc
    .tuple(
      fc.constantFrom(
        'project',
        'project',
        'interval',
        'format',
        'iso_timestamp_end',
        'X-API-KEY',
        'token',
        '',
      ),
      fc.oneof(
        fc.constantFrom('alpha', 'beta', '.*', 'daily', 'csv', '2026-11-14', '(', API_KEY),
        targetText,
      ),
    )
    .map(([key, value]) => `${key}=${value.replaceAll(' ', '+')}`);
  const query = fc.oneof(
    fc.constantFrom(
      'project=alpha&interval=daily',
      'project=beta&interval=hourly&format=csv',
      'project=.*&interval=daily',
    ),
    fc.array(pair, { maxLength: 4 }).map(pairs => pairs.join('&')),
  );
  const trusted = fc.constantFrom(API_KEY, secrets.logs, secrets.pinned);
  const wrong = fc.oneof(
    fc.constantFrom(
      '',
      ' ',
      `${API_KEY}x`,
      API_KEY.slice(1),
      `${API_KEY},${API_KEY}`,
      `Bearer ${API_KEY}`,
      'dnd_',
      '__proto__',
    ),
    fc.constantFrom(secrets.expired, secrets.machine),
    headerText,
    headerText.map(text => `dnd_${text}`),
  );
  const inEither = (secret: string) =>
    fc.constantFrom(
      `X-API-KEY: ${secret}\r\n`,
      `x-api-key:${secret}\r\n`,
      `Authorization: Bearer ${secret}\r\n`,
    );
  const credentials = fc.oneof(
    { weight: 3, arbitrary: trusted.chain(secret => inEither(secret).map(lines => ({ lines, secret }))) },
    { weight: 2, arbitrary: wrong.chain(secret => inEither(secret).map(lines => ({ lines, secret: '' }))) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        { lines: '', secret: '' },
        { lines: `X-API-KEY: wrong\r\nAuthorization: Bearer ${API_KEY}\r\n`, secret: '' },
        { lines: `X-API-KEY: ${API_KEY}\r\nX-API-KEY: ${API_KEY}\r\n`, secret: '' },
        { lines: `Authorization: Basic ${API_KEY}\r\n`, secret: '' },
        { lines: `Cookie: X-API-KEY=${API_KEY}\r\n`, secret: '' },
        { lines: `X-API-KEY: \r\nAuthorization: bearer ${API_KEY}\r\n`, secret: API_KEY },
      ),
    },
  );
  const header = fc
    .tuple(
      // No Accept-Encoding, because the test searches the bodies for rows.
      fc.constantFrom('Accept', 'If-None-Match', 'Cache-Control', 'Origin', 'X-Forwarded-For', 'Range'),
      fc.oneof(fc.constantFrom('*/*', 'text/csv', 'no-cache', '*'), headerText),
    )
    .map(([headerName, text]) => `${headerName}: ${text}\r\n`);
  return fc
    .record({
      method: fc.constantFrom('GET', 'GET', 'GET', 'GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'),
      path,
      query,
      credentials,
      headers: fc.array(header, { maxLength: 2 }),
    })
    .map(({ method, path: place, query: search, credentials: { lines, secret }, headers }) => ({
      bytes: Buffer.from(
        `${method} ${place}?${search} HTTP/1.1\r\nHost: a\r\n${lines}${headers.join('')}\r\n`,
        'latin1',
      ),
      isHead: method === 'HEAD',
      isTrusted: secret !== '',
      isPinned: secret === secrets.pinned,
    }));
}
