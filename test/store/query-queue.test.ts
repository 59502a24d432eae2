import { describe, expect, test } from 'vitest';
import { Flight } from '../../src/cache/single-flight.ts';
import { QueryQueue } from '../../src/store/query-queue.ts';
import type { QueryOptions } from '../../src/store/store.ts';

/** A queue whose queries run until `finishFirst` is called. */
function createQueue(queryConcurrency: number, queryQueueLength = 100) {
  const queue = new QueryQueue({ queryConcurrency, queryQueueLength, queryTimeoutSeconds: 60 });
  const running: { readonly name: string; readonly finish: () => void }[] = [];
  const run = (name: string, options: QueryOptions) =>
    queue.run(() => new Promise<void>(finish => running.push({ name, finish })), options);
  const add = (name: string, options: QueryOptions) =>
    run(name, options).then(
      () => 'done',
      error => (error as Error).message,
    );
  /** Adds queries of one caller. */
  const addAll = (caller: string, names: string, options: QueryOptions = {}) => {
    for (const name of names.split(' ')) void add(name, { callers: { ids: new Set([caller]) }, ...options });
  };
  const names = () => running.map(({ name }) => name).join(' ');
  const settle = () => new Promise(resolve => setImmediate(resolve));
  const finishFirst = async () => {
    running.shift()?.finish();
    await settle();
  };
  /** Finishes the queries one by one. Returns their names in the order of their starts. */
  const finishAll = async () => {
    await settle();
    const started: string[] = [];
    for (; running.length > 0; await finishFirst()) started.push(running[0]?.name ?? '');
    return started.join(' ');
  };
  return { queue, add, addAll, run, names, settle, finishFirst, finishAll };
}

const BACKGROUND: QueryOptions = { callers: { ids: new Set() } };

describe('the turns of the query queue', () => {
  test('one caller alone uses all slots, in the order of arrival', async () => {
    const { addAll, names, settle, finishAll } = createQueue(4);
    addAll('a', 'a1 a2 a3 a4 a5 a6');
    await settle();
    expect(names()).toBe('a1 a2 a3 a4');
    expect(await finishAll()).toBe('a1 a2 a3 a4 a5 a6');
  });

  test.each([1, 2, 8])(
    'with %i slots, the query of another caller starts as soon as one of the running queries has ended',
    async slots => {
      const { addAll, names, settle, finishFirst } = createQueue(slots, 300);
      const many = Array.from({ length: 300 }, (_, index) => `a${index}`);
      addAll('a', many.join(' '));
      await settle();
      addAll('b', 'b1 b2');
      await finishFirst();
      expect(names().split(' ')).toEqual([...many.slice(1, slots), 'b1']);
    },
  );

  test('with one slot, callers take turns, whether they send their queries at once or one after another', async () => {
    const { addAll, names, settle, finishFirst } = createQueue(1);
    addAll('a', 'a1 a2 a3 a4');
    const started: string[] = [];
    for (let i = 1; i <= 4; i++) {
      addAll('b', `b${i}`);
      addAll('c', `c${i}`);
      for (let turn = 0; turn < 3; turn++) {
        await settle();
        started.push(names());
        await finishFirst();
      }
    }
    expect(started.join(' ')).toBe('a1 b1 c1 a2 b2 c2 a3 b3 c3 a4 b4 c4');
  });

  test('slow queries of one caller do not take the slots of another one with fast queries', async () => {
    const { addAll, names, settle, finishFirst } = createQueue(4);
    addAll('slow', 's1 s2 s3 s4 s5 s6');
    await settle();
    addAll('fast', 'f1 f2 f3 f4 f5');
    await finishFirst();
    await finishFirst();
    expect(names()).toBe('s3 s4 f1 f2');
    await finishFirst(); // s3
    await finishFirst(); // s4
    expect(names()).toBe('f1 f2 s5 s6');
    await finishFirst(); // f1: the fast caller now has one slot, the slow one has two
    expect(names()).toBe('f2 s5 s6 f3');
  });

  test('a query that a second caller joins while it waits starts in the turn of that caller', async () => {
    const { addAll, run, names, settle, finishFirst } = createQueue(1);
    addAll('a', 'a1 a2 a3');
    const shared = new Flight((signal, callers) => run('shared', { signal, callers }), 'a', 0);
    void shared.join('a', undefined);
    await settle();
    void shared.join('b', undefined);
    await finishFirst();
    expect(names()).toBe('shared');
    await finishFirst();
    expect(names()).toBe('a2');
  });
});

describe('the slots of the query queue', () => {
  test('background queries run after those of all callers and leave one slot free', async () => {
    const { add, addAll, names, settle, finishFirst } = createQueue(2);
    addAll('a', 'a1 a2');
    void add('w1', BACKGROUND);
    void add('w2', BACKGROUND);
    addAll('b', 'b1');
    await settle();
    await finishFirst();
    expect(names()).toBe('a2 b1');
    await finishFirst();
    expect(names()).toBe('b1');
    await finishFirst();
    expect(names()).toBe('w1');
    addAll('b', 'b2');
    await settle();
    expect(names()).toBe('w1 b2');
  });

  test('a background query that waits starts in the last free slot as soon as a request waits for it', async () => {
    const { addAll, run, names, settle } = createQueue(2);
    addAll('a', 'a');
    const refresh = new Flight((signal, callers) => run('refresh', { signal, callers }), undefined, 0);
    await settle();
    expect(names()).toBe('a');
    void refresh.join('b', undefined);
    await settle();
    expect(names()).toBe('a refresh');
  });

  test('expensive queries run one at a time, and other queries run beside them', async () => {
    const { addAll, names, settle, finishFirst } = createQueue(4);
    addAll('a', 'x1 x2', { isExpensive: true });
    addAll('a', 'a1');
    addAll('b', 'x3', { isExpensive: true });
    await settle();
    expect(names()).toBe('x1 a1');
    await finishFirst();
    expect(names()).toBe('a1 x3');
    await finishFirst();
    await finishFirst();
    expect(names()).toBe('x2');
  });
});

describe('the length of the query queue', () => {
  test('a caller whose queue is full is rejected, and another caller can still wait', async () => {
    const { add, settle } = createQueue(2, 3);
    const results: string[] = [];
    const addFor = (caller: string) =>
      void add(caller, { callers: { ids: new Set([caller]) } }).then(text => results.push(text));
    for (let i = 0; i < 5; i++) addFor('a'); // 2 run, 3 wait
    for (let i = 0; i < 3; i++) addFor('b');
    await settle();
    expect(results).toEqual([]);
    addFor('a');
    addFor('b');
    await settle();
    const rejection = 'too many queries of this token are waiting; retry in a moment';
    expect(results).toEqual([rejection, rejection]);
  });
});
