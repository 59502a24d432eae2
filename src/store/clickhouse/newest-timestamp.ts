// Finds the timestamp of the newest record: first in the hour before `notAfter`, then since 1970 (../newest-timestamp.ts). Caches
// nothing, because other processes insert records too.
import type { LogKind } from '../../domain/log-columns.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import type { QueryOptions } from '../store.ts';
import type { Reader } from './reader.ts';

export function queryNewestTimestamp(
  reader: Reader,
  kind: LogKind,
  notAfter: bigint,
  project: string | undefined,
  options?: QueryOptions,
): Promise<bigint | undefined> {
  return findNewestTimestamp(notAfter, async start => {
    const { rows } = await reader.query(
      {
        sql: `select max(timestamp), count() from ${kind}_logs
          where timestamp >= {start:Int64} and timestamp <= {end:Int64}
            and ({project:Nullable(String)} is null or project = ifNull({project:Nullable(String)}, ''))`,
        parameters: { start: `${start}`, end: `${notAfter}`, project: project ?? null },
        purpose: 'newest',
      },
      options,
    );
    const [newest, count] = rows[0] ?? [];
    return Number(count) > 0 ? BigInt(newest ?? 0) : undefined;
  });
}
