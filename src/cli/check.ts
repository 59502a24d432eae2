// dendro check: finds the problems that would make the startup of `serve` fail, without serving. With --parity it also compares
// the results of the embedded store and ClickHouse.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Invocation, nameOf, readServeConfig, type ServeConfig } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { type Catalog, loadCatalog } from '../endpoint/catalog.ts';
import { type ComparedStore, compareStores } from '../endpoint/parity.ts';
import { runPreflight } from '../endpoint/preflight.ts';
import { replaySpool } from '../intake/applier.ts';
import { logTo } from '../observe/log.ts';
import { openStore, type StoreOptions, storeNameOf } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { readTokenFile } from '../token/token-file.ts';
import { requireEmbeddedStore } from './embedded-store.ts';

/** Longer lists of differences do not help to find the cause. */
const SHOWN_DIFFERENCES = 10;

export async function check(invocation: Invocation): Promise<void> {
  const config = readServeConfig(invocation);
  checkParityFlags(invocation, config);
  readTokenFile(config.tokensFile);
  const catalog = loadCatalog(config.endpointFolders, config.storeName);
  await withTemporaryDirectory('dendro-check-', directory => checkStore(config, catalog, directory));
  if (invocation.isOn('parity')) return checkParity(invocation, config);
  for (const { definition } of catalog.endpoints)
    process.stdout.write(`${definition.name}  ${definition.id}\n`);
  process.stdout.write(`${catalog.endpoints.length} endpoints, no problems found\n`);
}

/** Uses an empty data directory, so that the command can run next to a server that locks its own. */
async function checkStore(config: ServeConfig, catalog: Catalog, dataDirectory: string): Promise<void> {
  const store = await openStore({ ...config.store, dataDirectory });
  await runPreflight(catalog, store).finally(() => store.close());
}

function checkParityFlags(invocation: Invocation, { store }: ServeConfig): void {
  if (!invocation.isOn('parity')) {
    if (invocation.origin('project') === 'flag')
      throw new UsageError('--project needs --parity: it names a project whose results are compared');
  } else if (store.clickhouse === undefined || invocation.many('project').length === 0)
    throw new UsageError(
      `${nameOf(invocation, 'parity')} compares the store of --data with --store clickhouse://… and needs at least one --project`,
    );
}

async function checkParity(invocation: Invocation, config: ServeConfig): Promise<void> {
  const projects = invocation.many('project');
  const { clickhouse: _, ...embedded } = config.store;
  requireEmbeddedStore(embedded.dataDirectory);
  await withTemporaryDirectory('dendro-parity-', async directory => {
    const stores: ComparedStore[] = [];
    try {
      // The embedded store uses the directory of --data, so the ClickHouse store gets an empty one.
      for (const options of [embedded, { ...config.store, dataDirectory: directory }])
        stores.push(await openComparedStore(config, options));
      const [duckdb, other] = stores;
      if (duckdb === undefined || other === undefined) return;
      await replaySpool(embedded.dataDirectory, duckdb.store, logTo(process.stdout, process.stderr));
      await printParity(duckdb, other, projects);
    } finally {
      for (const { store } of stores) await store.close();
    }
  });
}

async function openComparedStore(config: ServeConfig, options: StoreOptions): Promise<ComparedStore> {
  const catalog = loadCatalog(config.endpointFolders, storeNameOf(options));
  return { store: await openStore(options), catalog };
}

async function printParity(
  duckdb: ComparedStore,
  clickhouse: ComparedStore,
  projects: readonly string[],
): Promise<void> {
  const { queries, rows, differences } = await compareStores(duckdb, clickhouse, projects, systemClock());
  for (const { endpoint, parameters, description } of differences.slice(0, SHOWN_DIFFERENCES))
    process.stdout.write(`${endpoint}?${parameters}: ${description}\n`);
  if (differences.length > 0)
    throw new OperatorError(
      `${differences.length} of ${queries} results differ between duckdb and clickhouse`,
    );
  process.stdout.write(`${queries} results, ${rows} rows: duckdb and clickhouse agree\n`);
}

async function withTemporaryDirectory(
  prefix: string,
  work: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
