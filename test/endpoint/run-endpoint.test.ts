import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ResultCache } from '../../src/cache/result-cache.ts';
import { type Endpoint, loadCatalog } from '../../src/endpoint/catalog.ts';
import type { EndpointResult } from '../../src/endpoint/endpoint-result.ts';
import { bindParameters } from '../../src/endpoint/parameters.ts';
import { type EndpointDependencies, runEndpoint } from '../../src/endpoint/run-endpoint.ts';
import type { QueryOptions, Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/clock.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { BUILT_IN } from '../support/custom-endpoints.ts';
import { openTestStore, type TestStore } from '../support/store.ts';

/** An HTTP request creates these values when they are read. This one records which were read. */
class RecordedRequest {
  readonly read: string[] = [];
  readonly parameters: URLSearchParams;

  constructor(project = 'abc') {
    this.parameters = new URLSearchParams({ project, interval: 'daily' });
  }

  get id(): string {
    this.read.push('id');
    return 'a-request-id';
  }
  get signal(): AbortSignal {
    this.read.push('signal');
    return new AbortController().signal;
  }
}

describe('running a cached endpoint', () => {
  let testStore: TestStore;
  let endpoint: Endpoint;
  let dependencies: EndpointDependencies;
  beforeAll(async () => {
    testStore = await openTestStore();
    const found = loadCatalog({ builtIn: BUILT_IN, custom: undefined }, testStore.store.name).find(
      'usage.api-counts',
    );
    if (found === undefined) throw new Error('usage.api-counts is missing');
    endpoint = found;
    const cache = new ResultCache<EndpointResult>(1_000_000, systemTimer, result => result.bytes);
    dependencies = { store: testStore.store, clock: systemClock, cache };
  });
  afterAll(() => testStore.close());

  const run = (request: RecordedRequest) => {
    const values = bindParameters(endpoint.definition, request.parameters);
    return runEndpoint(dependencies, endpoint, values, { request });
  };

  test('a cache miss reads the id and the signal of the request; a cache hit reads neither', async () => {
    const miss = new RecordedRequest();
    expect((await run(miss)).outcome).toBe('miss');
    expect(miss.read.sort()).toEqual(['id', 'signal']);
    const hit = new RecordedRequest();
    expect(await run(hit)).toMatchObject({ outcome: 'hit' });
    expect(hit.read).toEqual([]);
  });

  test.each([
    ['a project reference', 'abcdefghijklmnopqrst', false],
    ['a usual expression', '^https://[^/]+/rest/v1/[^?]*\\?select=.*', false],
    ['an expression with many states', '[a-z0-9]{20}\\.example\\.com', true],
  ])('the query with %s as a pattern is expensive: %s %s', async (_, pattern, isExpensive) => {
    const { store } = testStore;
    const seen: QueryOptions[] = [];
    const query: Store['query'] = (saved, values, options = {}) => {
      seen.push(options);
      return store.query(saved, values, options);
    };
    const validated = bindParameters(endpoint.definition, new RecordedRequest(pattern).parameters);
    await runEndpoint({ store: { ...store, query }, clock: systemClock }, endpoint, validated);
    expect(seen.map(options => options.isExpensive)).toEqual([isExpensive]);
  });

  test('a cache entry does not keep the request that created it', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const requests: WeakRef<object>[] = [];
    const miss = async (project: string) => {
      const request = new RecordedRequest(project);
      requests.push(new WeakRef(request));
      expect((await run(request)).outcome).toBe('miss');
    };
    for (const project of ['a', 'b', 'c', 'd', 'e']) await miss(project);
    await expect
      .poll(() => {
        collectGarbage();
        return requests.filter(request => request.deref() !== undefined).length;
      })
      .toBe(0);
  });
});
