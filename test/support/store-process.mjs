// Runs an embedded store in a process of its own, from its TypeScript sources: for tests with few descriptors, or of a close that might
// never return. Usage: node store-process.mjs TASK DATA-DIRECTORY. Prints one line of JSON.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadTypeScript } from './load-typescript.mjs';

const [task, dataDirectory] = process.argv.slice(2);
const module = await loadTypeScript(join(import.meta.dirname, '../../src/store/open-store.ts'));

const ENDLESS = {
  sql: 'select sum(a.range * b.range % 7) from range(10000000) a, range(10000000) b',
  columns: [{ name: 'sum', type: 'number' }],
  maxRows: 1,
};

const open = () =>
  module.openStore({
    dataDirectory,
    memoryLimit: '500MB',
    queryConcurrency: 1,
    queryQueueLength: 1,
    queryTimeoutSeconds: 15,
  });
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
  async 'close-while-running'() {
    const store = await open();
    const running = outcomeOf(store.query(ENDLESS, {}));
    await sleep(200);
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
  },
};

await TASKS[task]();
process.exit();
