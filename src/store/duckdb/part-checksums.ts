// The table with the checksums of the parts. It says what a part must contain, and which parts were not read back from the file
// yet. A part whose checksum is unknown has no row. Versions up to 0.2.0 do not know this table and leave it as it is.
import type { Checksum } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import type { Part } from './parts.ts';

/**
 * `first_sequence` and `next_sequence` are the range of sequence numbers of an unverified part (`Part.unverified`): one that was
 * not read back from the file yet. Both are null if the part is verified. `probe` is the value of PROBE when the row was written.
 */
export const CREATE_PART_CHECKSUMS_SQL = `create table if not exists logs.part_checksums (
  part bigint not null, records bigint not null, checksum hugeint not null, probe ubigint not null,
  first_sequence bigint, next_sequence bigint)`;

/**
 * A release of DuckDB can change its hash function. Then this value changes, and the checksums from before are ignored. Parts
 * that were unverified count as verified from then on.
 */
const PROBE = "hash('dendro', 1::bigint, 0.5::double, timestamp '2026-01-01')";

export interface PartChecksum extends Pick<Part, 'unverified'> {
  readonly checksum: Checksum;
}

/** Returns the checksums by part number. */
export async function loadChecksums(
  connection: DuckDBConnection,
): Promise<ReadonlyMap<number, PartChecksum>> {
  const result = await connection.runAndReadAll(
    `select part, records, checksum, first_sequence, next_sequence from logs.part_checksums where probe = ${PROBE}`,
  );
  return new Map(
    result.getRows().map(([part, records, checksum, firstSequence, nextSequence]) => [
      Number(part),
      {
        checksum: { rows: Number(records), sum: BigInt(String(checksum)) },
        unverified:
          firstSequence === null
            ? undefined
            : { firstSequence: Number(firstSequence), nextSequence: Number(nextSequence) },
      },
    ]),
  );
}

/** Saves the checksums of new and changed parts, and deletes those of removed ones. A changed part is a new `Part` object. */
export async function saveChecksums(
  connection: DuckDBConnection,
  before: readonly Part[],
  after: readonly Part[],
): Promise<void> {
  const changed = after.filter(part => !before.includes(part));
  const removed = before.filter(part => !after.includes(part));
  await deleteChecksums(
    connection,
    [...changed, ...removed].map(({ number }) => number),
  );
  for (const { number, checksum, unverified } of changed)
    if (checksum !== undefined)
      await connection.run(
        `insert into logs.part_checksums values (${number}, ${checksum.rows}, ${checksum.sum}, ${PROBE},
          ${unverified?.firstSequence ?? null}, ${unverified?.nextSequence ?? null})`,
      );
}

export async function deleteChecksums(connection: DuckDBConnection, parts: readonly number[]): Promise<void> {
  if (parts.length > 0) await connection.run(`delete from logs.part_checksums where part in (${parts})`);
}
