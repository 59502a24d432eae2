// Brings a database to the schema that this program knows.
import { OperatorError } from '../../errors.ts';
import type { ClickHouseAddress } from '../../store-address.ts';
import { forOperator } from './errors.ts';
import { Hosts } from './hosts.ts';
import {
  migrations,
  noteVersion,
  optionsOf,
  retentionStatements,
  type SchemaOptions,
  versionStatements,
} from './schema.ts';

const STATEMENT_TIMEOUT_MS = 300_000;

/** Answers the migrations that were applied now. */
export async function applySchema(address: ClickHouseAddress, retentionDays: number): Promise<number[]> {
  const options = optionsOf(address, retentionDays);
  // The database may not be there yet, and no statement needs it to be the current one. Asked by whoever may write.
  const hosts = new Hosts({ ...address, database: 'default', reader: address.writer }, 1);
  try {
    return await migrate(hosts, options);
  } catch (error) {
    throw forOperator('the schema could not be applied', error);
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
  const due = known.filter(({ version }) => version > found);
  for (const { version, statements } of due) {
    for (const statement of statements) await command(hosts, statement);
    await command(hosts, noteVersion(options, version));
  }
  if (due.length === 0) for (const statement of retentionStatements(options)) await command(hosts, statement);
  return due.map(({ version }) => version);
}

function command(hosts: Hosts, query: string): Promise<unknown> {
  return hosts.run(
    ({ client, signal }) => client.command({ query, abort_signal: signal }),
    AbortSignal.timeout(STATEMENT_TIMEOUT_MS),
  );
}

async function readVersion(hosts: Hosts, { database }: SchemaOptions): Promise<number> {
  const reply = await hosts.run(async ({ client, signal }) => {
    const query = `select max(version) from ${database}.dendro_schema`;
    const result = await client.query({ query, format: 'JSONCompact', abort_signal: signal });
    return result.json<[number | string]>();
  }, AbortSignal.timeout(STATEMENT_TIMEOUT_MS));
  return Number(reply.data[0]?.[0] ?? 0);
}
