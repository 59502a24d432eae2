// The whole program, whose warmer works or rests at a word: `work` or `rest`. It rests because whatever waits by the timer
// goes on waiting, so that nothing but the timer differs from the program as it is.
import { startApp } from '../../dist/app.js';
import { makeServeConfig, throwFaults } from '../tools/serve-config.mjs';

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
  makeServeConfig(['--data', dataFolder, '--endpoints', ownEndpoints], apiKey),
  throwFaults,
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
