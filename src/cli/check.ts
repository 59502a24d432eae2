// dendro check: everything that could keep `serve` from starting, found without serving. The SQL is checked against an
// empty store of its own, so that it can be run beside a server.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Invocation, readServeConfig } from '../config.ts';
import { loadCatalog } from '../endpoint/catalog.ts';
import { runPreflight } from '../endpoint/preflight.ts';
import { openStore } from '../store/open-store.ts';
import { readTokenFile } from '../token/token-file.ts';
import { checkParity } from './check-parity.ts';
import { refusePositionals } from './positionals.ts';

export async function check(invocation: Invocation): Promise<void> {
  refusePositionals(invocation);
  const config = readServeConfig(invocation);
  readTokenFile(config.tokensFile);
  const catalog = loadCatalog(config.endpointFolders, config.storeName);
  const dataDirectory = mkdtempSync(join(tmpdir(), 'dendro-check-'));
  try {
    const store = await openStore({ ...config.store, dataDirectory });
    await runPreflight(catalog, store).finally(() => store.close());
  } finally {
    rmSync(dataDirectory, { recursive: true, force: true });
  }
  if (invocation.isOn('parity')) return checkParity(invocation, config);
  for (const { definition } of catalog.endpoints)
    process.stdout.write(`${definition.name}  ${definition.id}\n`);
  process.stdout.write(`${catalog.endpoints.length} endpoints, all good\n`);
}
