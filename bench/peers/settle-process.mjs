// One process that has Dendro's store lay its records as it does in the background, until nothing is left to do.
// Call: node settle-process.mjs DATA-FOLDER QUIET-SECONDS. Some of it is done only after nothing has come in for so long.
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../dist/store/open-store.js';
import { makeServeConfig } from '../tools/serve-config.mjs';

const [dataFolder, quietSeconds] = process.argv.slice(2);
const store = await openStore(makeServeConfig(['--data', dataFolder], 'settling-needs-no-key-at-all').store);
let quietSince = performance.now();
while (performance.now() - quietSince < Number(quietSeconds) * 1000) {
  if ((await store.compact(BigInt(Date.now()) * 1000n)) || (await store.vacuum()))
    quietSince = performance.now();
  else await sleep(1000);
}
await store.close();
