import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, fastTimer } from '../support/app.ts';
import { type RandomRequest, randomRequest, toBytes } from '../support/random-request.ts';
import { openConnection, type RawConnection, type RawResponse } from '../support/raw-http.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const LANES = 8;
const REQUESTS_A_BATCH = 40;
const BATCHES = 1_250;

describe('50,000 random requests with all kinds of tokens, on several connections', () => {
  const lanes: (RawConnection | undefined)[] = Array.from({ length: LANES });
  const tokens = useTokens({
    logs: { scopes: ['query:logs.all'], redact_pii: true },
    pinned: { projects: ['alpha'] },
    expired: { expires_at: '2026-11-14T12:34:56Z' },
    machine: { scopes: ['ingest', 'metrics'] },
  });
  const app = useApp({ tokensFile: tokens.file, cacheBytes: 16 * 1024 * 1024 }, fastTimer);
  beforeAll(async () => {
    const at = '2026-11-14T12:30:00Z';
    await app.append('edge', [
      ...Array.from({ length: 50 }, (_, i) => edgeRecord({ at, path: `/rest/${i}`, message: 'kept-secret' })),
      edgeRecord({ at, project: 'beta', message: 'kept-secret THEIRS', metadata: { theirs: 'THEIRS' } }),
    ]);
    await app.append('function_edge', [
      functionEdgeRecord({ at }),
      functionEdgeRecord({ at, project: 'beta' }),
    ]);
  });
  afterAll(async () => {
    for (const lane of lanes) lane?.close();
  });

  /** Uses the lane's connection, or a new one if the server has closed it. */
  const send = async (lane: number, request: RandomRequest): Promise<RawResponse> => {
    lanes[lane] ??= await openConnection(app.url);
    const connection = lanes[lane];
    connection.write(toBytes(request));
    const response = await connection.next(request.method);
    if (response.headers['connection'] === 'close') {
      connection.close();
      lanes[lane] = undefined;
    }
    return response;
  };

  test('random requests cause no 5xx, no row for a wrong token and no foreign row for a pinned one', {
    timeout: 600_000,
  }, async () => {
    const seen = new Map<number, number>();
    let answersWithRows = 0;
    const check = (request: RandomRequest, { status, body, headers }: RawResponse) => {
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (status >= 500) throw new Error(`${status}: ${body}`);
      const hasRows =
        body.includes('kept-secret') || /"(total_rest_requests|error_count)":\d|^timestamp,/.test(body);
      if (hasRows) answersWithRows++;
      if (hasRows && request.access === undefined) throw new Error('rows for a wrong token');
      if (request.access === 'pinned' && body.includes('THEIRS')) throw new Error("another project's rows");
      if (body.includes(API_KEY)) throw new Error('the response contains a token');
      if (status >= 400 && request.method !== 'HEAD') {
        expect(headers['content-type']).toBe('application/json; charset=utf-8');
        expect(JSON.parse(body).error.code).toMatch(/^[a-z_]+$/);
      }
    };
    const { logs, pinned, expired, machine } = tokens.secrets;
    const request = randomRequest({ all: [API_KEY, logs], pinned: [pinned], rejected: [expired, machine] });
    const batch = fc.array(request, { minLength: REQUESTS_A_BATCH, maxLength: REQUESTS_A_BATCH });
    const property = fc.asyncProperty(batch, async requests => {
      const waiting = [...requests];
      const work = async (lane: number) => {
        for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
          try {
            check(next, await send(lane, next));
          } catch (error) {
            lanes[lane]?.close();
            lanes[lane] = undefined;
            throw new Error(`${toBytes(next)}`, { cause: error });
          }
        }
      };
      const results = await Promise.allSettled(lanes.map((_, lane) => work(lane)));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    });
    await fc.assert(property, { numRuns: BATCHES });

    expect([...seen.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(50_000);
    // The requests covered the relevant cases: some returned rows, others every kind of error.
    expect(answersWithRows).toBeGreaterThan(500);
    for (const status of [200, 400, 401, 403, 404, 405, 406])
      expect(seen.get(status) ?? 0, `${status}`).toBeGreaterThan(100);
    expect(app.events.filter(event => event.type === 'request_failed')).toEqual([]);
    expect((await app.get('/health')).status).toBe(200);
    expect((await app.query('logs.all', { project: 'alpha' })).rows).toHaveLength(50);
  });
});
