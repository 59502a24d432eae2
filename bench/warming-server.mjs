// The whole program, whose warmer works or rests at a word: `work` or `rest`. It rests because whatever waits by the timer
// goes on waiting, so that nothing but the timer differs from the program as it is.
import { join } from 'node:path';
import { startApp } from '../dist/app.js';

const [apiKey, dataFolder, ownEndpoints] = process.argv.slice(2);
let rests = true;
let held = [];

const timer = {
  now: () => performance.now(),
  after(ms, callback) {
    const timeout = setTimeout(() => (rests ? held.push(callback) : callback()), ms);
    return () => clearTimeout(timeout);
  },
};

const app = await startApp(
  {
    publicAddress: { host: '127.0.0.1', port: 0 },
    internalAddress: { host: '127.0.0.1', port: 0 },
    storeName: 'duckdb',
    store: {
      dataFolder,
      memoryLimit: '500MB',
      queryConcurrency: 8,
      queryQueueLength: 256,
      queryTimeoutSeconds: 30,
    },
    retentionDays: 90,
    cacheBytes: 64 * 1024 * 1024,
    warmConcurrency: 1,
    endpointFolders: { builtIn: join(import.meta.dirname, '..', 'endpoints'), own: ownEndpoints },
    tokensFile: join(dataFolder, 'tokens.json'),
    corsOrigins: [],
    tls: undefined,
    apiKey,
  },
  event => {
    throw event.error;
  },
  undefined,
  timer,
);

process.on('message', word => {
  rests = word === 'rest';
  const waiting = rests ? [] : held;
  if (!rests) held = [];
  for (const callback of waiting) callback();
  process.send(word);
});
process.on('disconnect', () => process.exit());
process.stdout.write(`ready: ${app.publicUrl}\n`);
