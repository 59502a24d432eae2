// The whole program, with a warmer that the parent process pauses and resumes. While paused, all callbacks of the program's timer
// wait, so the other background jobs pause too.
// Usage: node warming-server.mjs API-KEY DATA-DIRECTORY ENDPOINTS-DIRECTORY
import { createServeConfig, startApp, throwOnError } from '../tools/dendro-modules.mjs';

const [apiKey, dataDirectory, customEndpoints] = process.argv.slice(2);
let isPaused = true;
/** @type {(() => void)[]} */
let waiting = [];

const timer = {
  now: () => performance.now(),
  /** @param {number} ms @param {() => void} callback */
  after(ms, callback) {
    const timeout = setTimeout(() => (isPaused ? waiting.push(callback) : callback()), ms);
    return () => clearTimeout(timeout);
  },
};

const config = createServeConfig(['--data', dataDirectory, '--endpoints', customEndpoints], apiKey);
const app = await startApp(config, throwOnError, { timer });

process.on('message', message => {
  isPaused = message === 'pause';
  if (!isPaused) {
    const callbacks = waiting;
    waiting = [];
    for (const callback of callbacks) callback();
  }
  process.send?.(message);
});
process.on('disconnect', () => process.exit());
process.stdout.write(`ready: ${app.publicUrl}\n`);
