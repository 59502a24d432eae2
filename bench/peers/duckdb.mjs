// DuckDB by itself: a copy of Dendro's file, opened with the same settings, asked the same SQL with nothing in between.
import { join } from 'node:path';
import { sqlOf, valuesOf } from './question.mjs';

/** As bin/dendro sets it. */
const THREAD_POOL = { UV_THREADPOOL_SIZE: '16' };

export async function startDuckDb(workplace, folder, memoryLimit) {
  const command = [process.execPath, join(import.meta.dirname, 'duckdb-process.mjs'), folder, memoryLimit];
  const { child, stop } = await workplace.start(command, /^ready: (.*)/, THREAD_POOL);
  return {
    name: 'duckdb',
    command: workplace.show(command),
    ask(call, wantsRows = false) {
      return new Promise((resolve, reject) => {
        child.once('message', answer =>
          answer.error === undefined ? resolve(answer) : reject(new Error(answer.error)),
        );
        child.send({ sql: sqlOf('duckdb', call.endpoint), values: valuesOf(call), wantsRows });
      });
    },
    stop,
  };
}
