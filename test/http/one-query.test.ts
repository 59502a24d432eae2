import { beforeAll, describe, expect, test, vi } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { functionEdgeRecord } from '../support/record.ts';
import { getUndecoded } from '../support/undecoded.ts';
import { useApp } from '../support/use-app.ts';

const CALLERS = 1000;
const PATH = '/api/endpoints/query/functions.invocation-stats?project=abc&interval=1hr';

describe('single flight of a cold cache entry', () => {
  const app = useApp({ cacheBytes: 64 * 1024 * 1024 }, new ManualTimer());
  beforeAll(async () => {
    await app.append('function_edge', [functionEdgeRecord({ at: '2026-11-14T12:30:00Z', project: 'abc' })]);
  });

  test('a thousand concurrent first requests run one query and all get its result', async () => {
    const runQuery = app.store.query;
    let releaseQuery = () => {};
    const allReceived = new Promise<void>(resolve => {
      releaseQuery = resolve;
    });
    const query = vi.spyOn(app.store, 'query').mockImplementation(async (...args) => {
      await allReceived;
      return runQuery(...args);
    });

    // Each has its own connection, and all are open at the same time.
    const pending = Array.from({ length: CALLERS }, () =>
      getUndecoded(`${app.url}${PATH}`, { 'X-API-KEY': API_KEY, Connection: 'close' }),
    );
    await vi.waitFor(() => expect(query).toHaveBeenCalled(), { timeout: 20_000 });
    await app.get('/health'); // sent last; its response shows that the server has received the others
    releaseQuery();
    const responses = await Promise.all(pending);

    expect(query).toHaveBeenCalledTimes(1);
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    const [body, ...otherBodies] = new Set(responses.map(response => response.body.toString()));
    expect(JSON.parse(body ?? '').result).toHaveLength(1);
    expect(otherBodies).toEqual([]);
    expect(new Set(responses.map(({ headers }) => headers.etag)).size).toBe(1);
    const misses = responses.filter(({ headers }) => headers['cache-status'] === 'dendro; fwd=miss');
    const joined = responses.filter(
      ({ headers }) => headers['cache-status'] === 'dendro; fwd=miss; collapsed',
    );
    expect(misses).toHaveLength(1);
    expect(joined.length).toBeGreaterThan(CALLERS / 2);
  });
});
