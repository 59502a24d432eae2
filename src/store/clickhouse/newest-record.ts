// When the newest record was written. Asked anew each time: other processes bring records in, too.

import type { LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_SECOND } from '../../system/clock.ts';
import type { QueryOptions } from '../store.ts';
import type { Reader } from './reader.ts';

const MICROS_PER_HOUR = 3600n * MICROS_PER_SECOND;

export async function findNewest(
  reader: Reader,
  kind: LogKind,
  notAfter: bigint,
  project: string | undefined,
  call?: QueryOptions,
): Promise<bigint | undefined> {
  // The last hour nearly always has the answer; all of time is asked only if it has not.
  for (const start of [notAfter - MICROS_PER_HOUR, 0n]) {
    const { rows } = await reader.query(
      {
        sql: `select max(timestamp), count() from ${kind}_logs
          where timestamp >= {start:Int64} and timestamp <= {end:Int64}
            and ({project:Nullable(String)} is null or project = ifNull({project:Nullable(String)}, ''))`,
        parameters: { start: `${start}`, end: `${notAfter}`, project: project ?? null },
        purpose: 'newest',
      },
      call,
    );
    const [newest, count] = rows[0] ?? [];
    if (Number(count) > 0) return BigInt(newest ?? 0);
  }
  return undefined;
}
