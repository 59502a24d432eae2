import { describe, expect, test } from 'vitest';
import { Flight } from '../../src/cache/single-flight.ts';
import { QueryQueue } from '../../src/store/query-queue.ts';
import type { QueryOptions } from '../../src/store/store.ts';

/** A queue whose queries run until `finish` is called. */
function createQueue(queryConcurrency: number, queryQueueLength: number) {
  const queue = new QueryQueue({ queryConcurrency, queryQueueLength, queryTimeoutSeconds: 60 });
  const running: { readonly name: string; readonly finish: () => void }[] = [];
  const add = (name: string, options: QueryOptions) =>
    queue
      .run(() => new Promise<void>(finish => running.push({ name, finish })), options)
      .then(
        () => 'done',
        error => (error as Error).message,
      );
  const names = () => running.map(({ name }) => name).join(' ');
  const settle = () => new Promise(resolve => setImmediate(resolve));
  const finishFirst = async () => {
    running.shift()?.finish();
    await settle();
  };
  return { queue, add, names, settle, finishFirst, running };
}

describe('the slots of the query queue', () => {
  test.each([
    [8, 6],
    [4, 3],
    [3, 2],
    [2, 1],
    [1, 1],
  ])('with %i slots, one group uses at most %i', async (slots, share) => {
    const { add, running, settle } = createQueue(slots, 100);
    for (let i = 0; i < slots + 5; i++) void add('a', { group: 'a' });
    await settle();
    expect(running).toHaveLength(share);
  });

  test('a query of another group starts at once, and the waiting ones start when their group has a slot again', async () => {
    const { add, names, settle, finishFirst } = createQueue(4, 100);
    for (let i = 1; i <= 5; i++) void add(`a${i}`, { group: 'a' });
    void add('b1', { group: 'b' });
    void add('b2', { group: 'b' });
    await settle();
    expect(names()).toBe('a1 a2 a3 b1');
    await finishFirst();
    expect(names()).toBe('a2 a3 b1 a4');
    await finishFirst();
    expect(names()).toBe('a3 b1 a4 a5');
  });

  test('background queries count in their group too', async () => {
    const { add, names, settle } = createQueue(4, 100);
    for (let i = 1; i <= 5; i++) void add(`w${i}`, { group: 'a', priority: { background: true } });
    void add('a1', { group: 'a' });
    void add('b1', { group: 'b' });
    await settle();
    expect(names()).toBe('w1 w2 w3 b1');
  });

  test('a background query that waits starts in the last free slot as soon as a request waits for it', async () => {
    const { queue, add, names, settle, running } = createQueue(2, 100);
    void add('a', {});
    const work = () => new Promise<void>(finish => running.push({ name: 'refresh', finish }));
    const refresh = new Flight((signal, priority) => queue.run(work, { signal, priority }), true, 0);
    await settle();
    expect(names()).toBe('a');
    void refresh.join(undefined);
    await settle();
    expect(names()).toBe('a refresh');
  });

  test('queries without a group use all slots', async () => {
    const { add, running, settle } = createQueue(4, 100);
    for (let i = 0; i < 9; i++) void add('x', {});
    await settle();
    expect(running).toHaveLength(4);
  });
});

describe('the waiting queries of the query queue', () => {
  test('one group fills at most three quarters of the queue, so another group can still wait', async () => {
    const { add, settle } = createQueue(4, 8);
    const results: string[] = [];
    const record = (result: Promise<string>) => void result.then(text => results.push(text));
    for (let i = 0; i < 9; i++) record(add('a', { group: 'a' })); // 3 run, 6 wait
    await settle();
    expect(results).toEqual([]);
    record(add('a', { group: 'a' }));
    await settle();
    expect(results).toEqual(['too many queries of this endpoint are waiting; retry in a moment']);
    for (let i = 0; i < 3; i++) record(add('b', { group: 'b' })); // 1 runs, 2 wait
    await settle();
    expect(results).toHaveLength(1);
    record(add('b', { group: 'b' }));
    await settle();
    expect(results[1]).toBe('too many queries are waiting; retry in a moment');
  });
});
