import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { functionEdgeRecord } from '../support/record.ts';
import { getUndecoded } from '../support/undecoded.ts';

const CALLERS = 1000;
const PATH = '/api/endpoints/query/functions.invocation-stats?project=abc&interval=1hr';

describe('a thousand callers who ask the same thing at once, for the first time', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ cacheBytes: 64 * 1024 * 1024 }, new ManualTimer()); // no time passes: nothing is warmed
    await app.append('function_edge', [functionEdgeRecord({ at: '2026-11-14T12:30:00Z', project: 'abc' })]);
  });
  afterAll(() => app.close());

  test('run one query in the store, and all get its answer', async () => {
    const runQuery = app.store.query;
    let letRun = () => {};
    const allHaveAsked = new Promise<void>(resolve => {
      letRun = resolve;
    });
    const query = vi.spyOn(app.store, 'query').mockImplementation(async (...args) => {
      await allHaveAsked;
      return runQuery(...args);
    });

    // Each on a connection of its own, all of them open at the same time.
    const asking = Array.from({ length: CALLERS }, () =>
      getUndecoded(`${app.url}${PATH}`, { 'X-API-KEY': API_KEY, Connection: 'close' }),
    );
    await vi.waitFor(() => expect(query).toHaveBeenCalled(), { timeout: 20_000 });
    await app.get('/health'); // came last, and is answered: so the others have been taken up, too
    letRun();
    const answers = await Promise.all(asking);

    expect(query).toHaveBeenCalledTimes(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const [body, ...otherBodies] = new Set(answers.map(answer => answer.body.toString()));
    expect(JSON.parse(body ?? '').result).toHaveLength(1);
    expect(otherBodies).toEqual([]);
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(1);
    const misses = answers.filter(({ headers }) => headers['cache-status'] === 'dendro; fwd=miss');
    const joined = answers.filter(({ headers }) => headers['cache-status'] === 'dendro; fwd=miss; collapsed');
    expect(misses).toHaveLength(1);
    expect(joined.length).toBeGreaterThan(CALLERS / 2);
  });
});
