// Brings a database to the schema that this program knows.
import { OperatorError } from '../../domain/errors.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { toOperatorError } from './errors.ts';
import { Hosts } from './hosts.ts';
import {
  type Migration,
  migrations,
  noteVersion,
  optionsOf,
  retentionStatements,
  type SchemaOptions,
  versionStatements,
} from './schema.ts';

const STATEMENT_TIMEOUT_MS = 300_000;

/** Answers the migrations that were applied now. */
export async function applySchema(address: ClickHouseUrl, retentionDays: number): Promise<number[]> {
  const options = optionsOf(address, retentionDays);
  // The database may not be there yet, and no statement needs it to be the current one. Asked by whoever may write.
  const hosts = new Hosts({ ...address, database: 'default', reader: address.writer }, 1);
  try {
    return await migrate(hosts, options);
  } catch (error) {
    throw toOperatorError('the schema could not be applied', error);
  } finally {
    await hosts.close();
  }
}

async function migrate(hosts: Hosts, options: SchemaOptions): Promise<number[]> {
  for (const statement of versionStatements(options)) await command(hosts, statement);
  const known = migrations(options);
  const found = await readVersion(hosts, options);
  const newest = known.at(-1)?.version ?? 0;
  if (found > newest)
    throw new OperatorError(
      `the database ${options.database} has schema version ${found}, and this program knows ${newest}: use a newer Dendro`,
    );
  const isNew = ({ version }: Migration) => version > found;
  for (const migration of known) {
    // Those of old, too: they do nothing where all is there, and restore a table that is missing.
    for (const statement of migration.statements) await command(hosts, statement);
    if (isNew(migration)) await command(hosts, noteVersion(options, migration.version));
  }
  const expiring = await readExpiring(hosts, options);
  for (const statement of retentionStatements(options, expiring)) await command(hosts, statement);
  return known.filter(isNew).map(({ version }) => version);
}

function command(hosts: Hosts, query: string): Promise<unknown> {
  return hosts.run(
    ({ client, signal }) => client.command({ query, abort_signal: signal }),
    AbortSignal.timeout(STATEMENT_TIMEOUT_MS),
  );
}

async function readVersion(hosts: Hosts, { database }: SchemaOptions): Promise<number> {
  const [newest] = await read(hosts, `select max(version) from ${database}.dendro_schema`);
  return Number(newest ?? 0);
}

/** The tables that have a TTL. */
async function readExpiring(hosts: Hosts, { database }: SchemaOptions): Promise<ReadonlySet<string>> {
  const where = `database = '${database}' and position(engine_full, ' TTL ') > 0`;
  return new Set((await read(hosts, `select name from system.tables where ${where}`)).map(String));
}

/** The first column of the answer. */
async function read(hosts: Hosts, query: string): Promise<(number | string | undefined)[]> {
  const { data } = await hosts.run(async ({ client, signal }) => {
    const result = await client.query({ query, format: 'JSONCompact', abort_signal: signal });
    return result.json<[number | string]>();
  }, AbortSignal.timeout(STATEMENT_TIMEOUT_MS));
  return data.map(([cell]) => cell);
}
