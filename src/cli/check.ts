// dendro check: finds the problems that would make the startup of `serve` fail, without serving. With --parity it then compares
// the results of the embedded store and ClickHouse. With --deep it only reads all records (check-deep.ts).
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { findListenerProblems, loadConfiguredEndpoints } from '../app.ts';
import { type Invocation, nameOf, readServeConfig, type ServeConfig } from '../config.ts';
import { type Damage, formatDamage } from '../domain/damage.ts';
import { DendroError, joinProblems, OperatorError, UsageError } from '../domain/errors.ts';
import { type Catalog, createCatalog, loadCatalog } from '../endpoint/catalog.ts';
import { type ComparedStore, compareStores } from '../endpoint/parity.ts';
import { runPreflight } from '../endpoint/preflight.ts';
import { hasOldStore, hasStoreFiles, inspectStore, openStore } from '../store/open-store.ts';
import type { StoreName } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { inspectDataDirectory } from '../system/data-directory.ts';
import { checkWritable, describeFileError } from '../system/file-access.ts';
import { findLockOwner } from '../system/lock.ts';
import { readTokenFile } from '../token/token-file.ts';
import { checkDeep, OLD_STORE_LINE } from './check-deep.ts';
import type { Io } from './io.ts';
import { openLocal } from './target.ts';
import { withTemporaryDirectory } from './temporary-directory.ts';

/** More of them do not help to find the cause. */
const MAX_DIFFERENCES_SHOWN = 10;

export async function check(invocation: Invocation, io: Io): Promise<void> {
  const config = readServeConfig(invocation);
  checkParityFlags(invocation, config);
  const isJson = invocation.isOn('json');
  if (invocation.isOn('deep')) return checkDeep(config, isJson, io);
  const findings = await findProblems(config);
  const hasProblems = findings.problems.length > 0;
  const isParity = invocation.isOn('parity');
  // Standard output gets one JSON document: if checkParity runs, it prints that document.
  if (isJson && (hasProblems || !isParity)) printFindings(findings, io);
  if (hasProblems) throw joinProblems(findings.problems);
  if (isParity) return checkParity(invocation, config, io);
  if (isJson) return;
  const { stdout } = io;
  for (const { name, id } of findings.endpoints) stdout.write(`${name}  ${id}\n`);
  for (const damage of findings.repairable) stdout.write(`${formatDamage(damage)}\n`);
  for (const note of findings.notes) stdout.write(`${note}\n`);
  if (findings.isOldStore) stdout.write(`${OLD_STORE_LINE}\n`);
  if (findings.serverPid !== undefined)
    stdout.write(
      `the data directory is in use by PID ${findings.serverPid}, so its store was not checked, and ports in use were assumed to belong to that process\n`,
    );
  stdout.write(`${findings.endpoints.length} endpoints, no problems found\n`);
}

interface Findings {
  readonly endpoints: readonly { readonly id: string; readonly name: string }[];
  readonly problems: readonly Error[];
  /** What the next start repairs. */
  readonly repairable: readonly Damage[];
  /** What `serve` accepts, but what may be a mistake. */
  readonly notes: readonly string[];
  /** The process that uses the data directory, if there is one. */
  readonly serverPid: number | undefined;
  /** Whether the store is of an earlier release, and the next start converts it. */
  readonly isOldStore: boolean;
}

/**
 * Looks for everything that `serve` would refuse. If a server already uses the data directory, a port that is in use is assumed to
 * belong to it and is not a problem.
 */
async function findProblems(config: ServeConfig): Promise<Findings> {
  const { dataDirectory } = config.store;
  const serverPid = findLockOwner(dataDirectory);
  const problems: Error[] = [];
  const repairable: Damage[] = [];
  const notes: string[] = [];
  if (!existsSync(dataDirectory)) notes.push(`${dataDirectory} does not exist; serve will create it`);
  const report = (error: unknown) => {
    if (!(error instanceof OperatorError || error instanceof DendroError)) throw error;
    problems.push(error);
  };
  const attempt = async (step: () => unknown) => {
    try {
      await step();
    } catch (error) {
      report(error);
    }
  };
  const isPortOfServer = (error: unknown) => serverPid !== undefined && isAddressInUse(error);
  for (const problem of await findListenerProblems(config)) if (!isPortOfServer(problem)) report(problem);
  const listenerProblemCount = problems.length;
  await attempt(() => inspectDataDirectory(dataDirectory));
  const isDirectoryUsable = problems.length === listenerProblemCount;
  if (isDirectoryUsable && serverPid === undefined && config.storeName === 'duckdb')
    await attempt(async () => {
      const options = { dataDirectory, onlySizes: true };
      const { setAside, damages, error } = await inspectStore(config.storeName, options);
      if (error !== undefined) throw error;
      repairable.push(...setAside, ...damages);
    });
  // For a tokens file in an unusable data directory, this would only report the same problem again.
  if (isDirectoryUsable || !isInside(dataDirectory, config.tokensFile))
    await attempt(() => checkTokens(config));
  let endpoints: Findings['endpoints'] = [];
  await attempt(async () => {
    const catalog = createCatalog([...loadConfiguredEndpoints(config).endpoints]);
    await withTemporaryDirectory('dendro-check-', directory => checkPreflight(config, catalog, directory));
    endpoints = catalog.endpoints.map(({ definition: { id, name } }) => ({ id, name }));
    for (const { definition, definitionFile } of catalog.endpoints)
      if (basename(dirname(definitionFile)) !== definition.name)
        notes.push(
          `${definitionFile}: the name of the folder differs from the endpoint's, ${definition.name}`,
        );
  });
  const isOldStore = config.storeName === 'duckdb' && (await hasOldStore(dataDirectory));
  return { endpoints, problems, repairable, notes, serverPid, isOldStore };
}

function isAddressInUse(error: unknown): boolean {
  return ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE';
}

function isInside(directory: string, file: string): boolean {
  return resolve(dirname(file)) === resolve(directory);
}

/**
 * Checks that the tokens file is valid. If it is missing, the first start creates it, unless the environment has an API key. So
 * without tokens and without such a key, checks that its directory is writable (also for a file with an empty list of tokens).
 */
function checkTokens({ tokensFile, environmentKeys }: ServeConfig): void {
  if (readTokenFile(tokensFile).length > 0 || environmentKeys.length > 0) return;
  const directory = dirname(resolve(tokensFile));
  try {
    checkWritable(directory);
  } catch (error) {
    const reason = describeFileError(directory, error as NodeJS.ErrnoException);
    throw new OperatorError(`cannot create the tokens file ${tokensFile}: ${reason}`);
  }
}

function printFindings(
  { endpoints, problems, repairable, notes, serverPid, isOldStore }: Findings,
  { stdout }: Io,
): void {
  const findings = {
    endpoints,
    problems: problems.map(({ message }) => message),
    repairable,
    notes,
    data_directory_used_by: serverPid ?? null,
    store_of_earlier_release: isOldStore,
  };
  stdout.write(`${JSON.stringify(findings, undefined, 2)}\n`);
}

/**
 * Runs the preflight with an empty data directory, because a running server locks the configured one. With ClickHouse, the
 * preflight checks the real tables.
 */
async function checkPreflight(config: ServeConfig, catalog: Catalog, dataDirectory: string): Promise<void> {
  const store = await openStore({ ...config.store, dataDirectory });
  await runPreflight(catalog, store).finally(() => store.close());
}

function checkParityFlags(invocation: Invocation, { store }: ServeConfig): void {
  if (invocation.isOn('parity') && invocation.isOn('deep'))
    throw new UsageError('--parity and --deep cannot be combined; run the command once for each');
  if (!invocation.isOn('parity')) {
    if (invocation.origin('project') === 'flag')
      throw new UsageError('--project needs --parity: it names a project whose results are compared');
  } else if (store.clickhouse === undefined || invocation.many('project').length === 0)
    throw new UsageError(
      `${nameOf(invocation, 'parity')} compares the store of --data with --store clickhouse://… and needs at least one --project`,
    );
}

async function checkParity(invocation: Invocation, config: ServeConfig, io: Io): Promise<void> {
  const { dataDirectory, clickhouse: _, ...options } = config.store;
  requireEmbeddedStore(dataDirectory);
  const catalogOf = (storeName: StoreName) => loadCatalog(config.endpointFolders, storeName);
  await withTemporaryDirectory('dendro-parity-', async directory => {
    const embedded = { ...config, storeName: 'duckdb' as const, store: { ...options, dataDirectory } };
    const local = await openLocal(embedded, io);
    try {
      // The embedded store uses the directory of --data, so the ClickHouse store gets an empty one.
      const clickhouse = await openStore({ ...config.store, dataDirectory: directory });
      await printParity(
        { store: local.store, catalog: catalogOf('duckdb') },
        { store: clickhouse, catalog: catalogOf('clickhouse') },
        invocation.many('project'),
        invocation.isOn('json'),
        io,
      ).finally(() => clickhouse.close());
    } finally {
      await local.close();
    }
  });
}

/** Throws an OperatorError if the directory has no embedded store, or if this user cannot access it. */
export function requireEmbeddedStore(dataDirectory: string): void {
  try {
    statSync(dataDirectory);
    if (hasStoreFiles('duckdb', dataDirectory)) return;
  } catch (error) {
    const systemError = error as NodeJS.ErrnoException;
    if (systemError.code !== 'ENOENT')
      throw new OperatorError(
        `cannot read the embedded store in ${dataDirectory}: ${describeFileError(dataDirectory, systemError)}`,
      );
  }
  throw new OperatorError(`there is no embedded store in ${dataDirectory}`);
}

async function printParity(
  duckdb: ComparedStore,
  clickhouse: ComparedStore,
  projects: readonly string[],
  isJson: boolean,
  { stdout }: Io,
): Promise<void> {
  const { queries, rows, differences } = await compareStores(duckdb, clickhouse, projects, systemClock());
  if (isJson) stdout.write(`${JSON.stringify({ queries, rows, differences }, undefined, 2)}\n`);
  const shown = isJson ? [] : differences.slice(0, MAX_DIFFERENCES_SHOWN);
  for (const { endpoint, parameters, description } of shown)
    stdout.write(`${endpoint}?${parameters}: ${description}\n`);
  if (differences.length > 0)
    throw new OperatorError(
      `${differences.length} of ${queries} results differ between duckdb and clickhouse`,
    );
  if (!isJson) stdout.write(`${queries} results, ${rows} rows: duckdb and clickhouse agree\n`);
}
