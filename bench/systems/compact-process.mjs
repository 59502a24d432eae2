// One process that runs the background maintenance of Dendro's store until there is no more work. Some of it starts only
// when no record has arrived for a while. Usage: node compact-process.mjs DATA-DIRECTORY QUIET-SECONDS
import { setTimeout as sleep } from 'node:timers/promises';
import { createServeConfig, openStore } from '../tools/dendro-modules.mjs';

const [dataDirectory, quietSeconds] = process.argv.slice(2);
const config = createServeConfig(['--data', dataDirectory], 'compaction-uses-no-api-key');
const store = await openStore(config.store);
let quietSince = performance.now();
while (performance.now() - quietSince < Number(quietSeconds) * 1000) {
  if ((await store.maintain('compact')) > 0) quietSince = performance.now();
  else await sleep(1000);
}
await store.close();
