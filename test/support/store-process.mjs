// Runs an embedded store in a process of its own, from its TypeScript sources: for tests with two processes, with a process that
// is killed, or with one that might never exit. Usage: node store-process.mjs TASK DATA-DIRECTORY. Prints one line of JSON.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadTypeScript } from '../crash/load-typescript.mjs';

const [task, dataDirectory] = process.argv.slice(2);
const load = file => loadTypeScript(join(import.meta.dirname, '../../src', file));
const module = await load('store/open-store.ts');

const ENDLESS = {
  sql: 'select sum(a.range * b.range % 7) from range(10000000) a, range(10000000) b',
  columns: [{ name: 'sum', type: 'number' }],
  maxRows: 1,
};
const LINE = `${['', 'kept', 1_794_659_696_789_012, 'alpha', 'written before the kill', '{}'].join('\x1f')}\n`;

const open = () =>
  module.openStore({
    dataDirectory,
    memoryLimit: '500MB',
    queryConcurrency: 1,
    queryQueueLength: 1,
    queryTimeoutSeconds: 15,
  });
/** `flush` applies and flushes 50 records, whose timestamps are their sequence numbers. */
const openToFlush = async () => {
  const { toLogLines } = await load('domain/log-line.ts');
  const store = await open();
  const flush = async () => {
    const first = store.flushedUpTo('edge');
    const records = Array.from({ length: 50 }, (_, i) => ({
      id: `n${first + i}`,
      timestampMicros: first + i,
      project: `p${i % 7}`,
      eventMessage: 'x'.repeat(2000),
      metadata: '{}',
      extracted: { url: '', path: '' },
    }));
    await store.apply({ ...toLogLines('edge', records), firstSequence: first });
    await store.flush(['edge']);
  };
  return { store, flush };
};
const print = value => process.stdout.write(`${JSON.stringify(value)}\n`);
const outcomeOf = query =>
  query.then(
    () => 'completed',
    error => error.code ?? error.message,
  );

const TASKS = {
  /** Prints whether the store can be opened, or the error. */
  async open() {
    try {
      await (await open()).close();
      print({ opened: true });
    } catch (error) {
      print({ opened: false, name: error.name, message: error.message });
    }
  },
  /** Keeps the store open until the process is killed. */
  async hold() {
    const store = await open();
    print({ opened: true });
    await sleep(60_000);
    await store.close();
  },
  /** Appends a record and waits for the kill. */
  async append() {
    const store = await open();
    await store.append(
      (async function* () {
        yield { kind: 'auth', count: 1, lines: Buffer.from(LINE) };
      })(),
    );
    print({ appended: true });
    await sleep(60_000);
  },
  /** Flushes and compacts until it is killed. Prints the number of flushed records after the first compaction. */
  async compact() {
    const { store, flush } = await openToFlush();
    for (let i = 0; i < 16; i++) await flush();
    await store.maintain('compact');
    print({ flushed: store.flushedUpTo('edge') });
    for (;;) {
      const compaction = store.maintain('compact');
      for (let i = 0; i < 16; i++) await flush();
      await compaction;
    }
  },
  /** Flushes records and removes all but the newest 400, until it is killed. Prints the number of flushed records at first. */
  async expire() {
    const { store, flush } = await openToFlush();
    for (let i = 0; i < 10; i++) await flush();
    print({ flushed: store.flushedUpTo('edge') });
    for (;;) {
      await flush();
      const expiredBefore = BigInt(store.flushedUpTo('edge') - 400);
      await store.maintain({ expire: { expiredBefore, rewriteBefore: expiredBefore } });
    }
  },
  async 'close-while-running'() {
    const store = await open();
    const running = outcomeOf(store.query(ENDLESS, {}));
    await sleep(200);
    await store.close();
    print({ running: await running });
  },
  async 'close-right-after-a-call'() {
    const store = await open();
    const running = outcomeOf(store.query(ENDLESS, {}));
    await store.close();
    print({ running: await running });
  },
  async 'close-while-waiting'() {
    const store = await open();
    const controller = new AbortController();
    const running = outcomeOf(store.query(ENDLESS, {}, { signal: controller.signal }));
    const waiting = outcomeOf(store.query(ENDLESS, {}));
    await sleep(200);
    const closing = store.close();
    controller.abort(new Error('left'));
    await closing;
    await running;
    print({ waiting: await Promise.race([waiting, sleep(2000).then(() => 'still waiting')]) });
    process.exit();
  },
};

await TASKS[task]();
