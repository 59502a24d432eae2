// dendro check --parity: asks the embedded store of --data and the ClickHouse of --store the same questions.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Invocation, ServeConfig } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { loadCatalog } from '../endpoint/catalog.ts';
import { compareStores, type Side } from '../endpoint/parity.ts';
import { replaySpool } from '../intake/applier.ts';
import { openStore, type StoreOptions, storeNameOf } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';

const SHOWN = 10;

export async function checkParity(invocation: Invocation, config: ServeConfig): Promise<void> {
  const projects = invocation.many('project');
  const { clickhouse, ...embedded } = config.store;
  if (clickhouse === undefined || projects.length === 0)
    throw new UsageError(
      '--parity compares the store of --data with --store clickhouse://…, for every --project that is named',
    );
  if (!existsSync(join(embedded.dataDirectory, 'dendro.duckdb')))
    throw new OperatorError(`there is no embedded store in ${embedded.dataDirectory}`);
  const passing = mkdtempSync(join(tmpdir(), 'dendro-parity-'));
  const sides: Side[] = [];
  try {
    // ClickHouse's side needs no spool; the folder of --data is the other's.
    for (const options of [embedded, { ...config.store, dataDirectory: passing }])
      sides.push(await openSide(config, options));
    const [one, other] = sides;
    if (one === undefined || other === undefined) return;
    await replaySpool(embedded.dataDirectory, one.store);
    const { asked, rows, differences } = await compareStores(one, other, projects, systemClock());
    for (const { endpoint, parameters, what } of differences.slice(0, SHOWN))
      process.stdout.write(`${endpoint}?${parameters}: ${what}\n`);
    if (differences.length > 0)
      throw new OperatorError(
        `${differences.length} of ${asked} answers differ between duckdb and clickhouse`,
      );
    process.stdout.write(`${asked} answers, ${rows} rows: duckdb and clickhouse agree\n`);
  } finally {
    for (const { store } of sides) await store.close();
    rmSync(passing, { recursive: true, force: true });
  }
}

async function openSide(config: ServeConfig, options: StoreOptions): Promise<Side> {
  const catalog = loadCatalog(config.endpointFolders, storeNameOf(options));
  return { store: await openStore(options), catalog };
}
