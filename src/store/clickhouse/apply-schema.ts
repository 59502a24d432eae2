// Creates or updates the tables of a ClickHouse database (schema.ts). Safe to repeat.
import { OperatorError } from '../../domain/errors.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { toOperatorError } from './errors.ts';
import { Hosts } from './hosts.ts';
import {
  insertVersion,
  type Migration,
  migrations,
  retentionStatements,
  type SchemaOptions,
  toSchemaOptions,
  versionStatements,
} from './schema.ts';

const STATEMENT_TIMEOUT_MS = 300_000;
/** Connections to each host: one for the statement, and one for the pings while it runs. */
const CONNECTIONS = 2;

/** Returns the versions of the migrations that were new to the database. */
export async function applySchema(clickhouse: ClickHouseUrl, retentionDays: number): Promise<number[]> {
  const options = toSchemaOptions(clickhouse, retentionDays);
  // The database may not exist yet, so the connection uses `default`, and all statements name the database. All statements run as
  // the writing user, also those that only read.
  const hosts = new Hosts({ ...clickhouse, database: 'default', reader: clickhouse.writer }, CONNECTIONS);
  try {
    return await applyMigrations(hosts, options);
  } catch (error) {
    throw toOperatorError('cannot apply the ClickHouse schema', error);
  } finally {
    await hosts.close();
  }
}

async function applyMigrations(hosts: Hosts, options: SchemaOptions): Promise<number[]> {
  for (const statement of versionStatements(options)) await runStatement(hosts, statement);
  const supported = migrations(options);
  const newestVersion = supported.at(-1)?.version ?? 0;
  const currentVersion = await readVersion(hosts, options);
  if (currentVersion > newestVersion)
    throw new OperatorError(
      `database ${options.database} has schema version ${currentVersion}, but this version of Dendro supports versions up to ${newestVersion}; upgrade Dendro`,
    );
  const isNew = ({ version }: Migration) => version > currentVersion;
  for (const migration of supported) {
    // Old migrations run too: they change nothing that exists, and create tables that are missing.
    for (const statement of migration.statements) await runStatement(hosts, statement);
    if (isNew(migration)) await runStatement(hosts, insertVersion(options, migration.version));
  }
  const tablesWithTtl = await readTablesWithTtl(hosts, options);
  for (const statement of retentionStatements(options, tablesWithTtl)) await runStatement(hosts, statement);
  return supported.filter(isNew).map(({ version }) => version);
}

function runStatement(hosts: Hosts, query: string): Promise<unknown> {
  return hosts.run(
    ({ client, signal }) => client.command({ query, abort_signal: signal }),
    AbortSignal.timeout(STATEMENT_TIMEOUT_MS),
  );
}

async function readVersion(hosts: Hosts, { database }: SchemaOptions): Promise<number> {
  const [newest] = await readFirstColumn(hosts, `select max(version) from ${database}.dendro_schema`);
  return Number(newest ?? 0);
}

async function readTablesWithTtl(hosts: Hosts, { database }: SchemaOptions): Promise<ReadonlySet<string>> {
  const names = await readFirstColumn(
    hosts,
    `select name from system.tables where database = '${database}' and position(engine_full, ' TTL ') > 0`,
  );
  return new Set(names.map(String));
}

async function readFirstColumn(hosts: Hosts, query: string): Promise<(number | string | undefined)[]> {
  const { data } = await hosts.run(async ({ client, signal }) => {
    const result = await client.query({ query, format: 'JSONCompact', abort_signal: signal });
    return result.json<[number | string]>();
  }, AbortSignal.timeout(STATEMENT_TIMEOUT_MS));
  return data.map(([cell]) => cell);
}
