// The table `loads`: one row for each content, such as a file, that `Store.append` has stored. It prevents loading the same
// content twice, even after retention or a deletion has removed its records.
import type { EarlierLoad, LoadIdentity } from '../store.ts';
import type { DuckDBConnection } from './driver.ts';

export const CREATE_LOADS_SQL = `create table if not exists logs.loads (
  source varchar not null, digest varchar not null, file_bytes bigint not null, records bigint not null,
  loaded_at timestamp not null, primary key (source, digest))`;

/** Returns the earlier load of the same content. */
export async function findLoad(
  connection: DuckDBConnection,
  { source, digest }: Pick<LoadIdentity, 'source' | 'digest'>,
): Promise<EarlierLoad | undefined> {
  const [load] = await readLoads(connection, 'source = $source and digest = $digest', { source, digest });
  return load;
}

/** Returns the earlier loads of this source (LoadIdentity.source) from files of this size. */
export function findLoadsOfSize(
  connection: DuckDBConnection,
  source: string,
  fileBytes: number,
): Promise<readonly EarlierLoad[]> {
  const condition = 'source = $source and file_bytes = $fileBytes';
  return readLoads(connection, condition, { source, fileBytes: BigInt(fileBytes) });
}

/** Must be called in the transaction that appends the records. */
export async function saveLoad(
  connection: DuckDBConnection,
  { source, digest, fileBytes }: LoadIdentity,
  records: number,
  nowMicros: bigint,
): Promise<void> {
  await connection.run(
    `insert or replace into logs.loads
    values ($source, $digest, $fileBytes, $records, make_timestamp($nowMicros::bigint))`,
    { source, digest, fileBytes: BigInt(fileBytes), records: BigInt(records), nowMicros },
  );
}

async function readLoads(
  connection: DuckDBConnection,
  condition: string,
  values: Record<string, string | bigint>,
): Promise<EarlierLoad[]> {
  const result = await connection.runAndReadAll(
    `select digest, records, epoch_us(loaded_at) from logs.loads where ${condition}`,
    values,
  );
  return result.getRows().map(([digest, records, loadedAt]) => ({
    digest: String(digest),
    records: Number(records),
    loadedAtMicros: BigInt(String(loadedAt)),
  }));
}
