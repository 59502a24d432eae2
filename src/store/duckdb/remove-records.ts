// Removes records: those that have expired, the oldest ones if the disk is full, and those of a project that is erased. Whole parts are
// deleted; a part that has other records too is replaced by a copy without the removed ones.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { EraseScope, Expiry } from '../store.ts';
import type { Condition } from './copy-records.ts';
import { DuckDBTimestampValue } from './driver.ts';
import type { Part, Parts } from './parts.ts';
import { countRecords, type Rewriter } from './rewriter.ts';

type Components = { readonly rewriter: Rewriter; readonly parts: Parts };

/**
 * Implements Store.deleteExpired. If the rewrite of a kind fails, such as on a full disk, continues with the other kinds, then throws
 * the first error.
 */
export function deleteExpired(
  { rewriter, parts }: Components,
  { expiredBefore, rewriteBefore }: Expiry,
): Promise<number> {
  return rewriter.run(async () => {
    const expired = parts.list().filter(({ entry }) => entry.until < expiredBefore);
    await parts.commit({
      remove: expired,
      change: ({ setAside }) => ({
        expiredBefore,
        setAside: setAside.filter(({ until }) => until >= expiredBefore),
      }),
    });
    let removed = countRecords(expired);
    const errors: unknown[] = [];
    const before = new DuckDBTimestampValue(expiredBefore);
    for (const kind of LOG_KINDS) {
      // The oldest one first. If it cannot be rewritten, such as on a nearly full disk, the next one may be smaller.
      const due = parts.list(kind).filter(({ entry }) => entry.since < rewriteBefore);
      for (const part of due.reverse())
        try {
          removed += await rewriter.rewrite([part], { sql: 'timestamp < $before', values: { before } });
          break;
        } catch (error) {
          errors.push(error);
        }
    }
    if (errors.length > 0) throw errors[0];
    return removed;
  });
}

/** Implements Store.evictOldest. */
export function evictOldest({ rewriter, parts }: Components, maxBytes: number): Promise<number> {
  return rewriter.run(async () => {
    let bytes = parts.bytes;
    const evicted: Part[] = [];
    for (const part of [...parts.list()].reverse()) {
      if (bytes > maxBytes) evicted.push(part);
      bytes -= part.entry.bytes;
    }
    await parts.commit({ remove: evicted });
    return countRecords(evicted);
  });
}

/**
 * Implements Store.eraseProject. When it resolves, no file of a part has text of the project, except for those that were set aside.
 * If the process is killed, each part has all of these records or none.
 */
export function eraseProject({ rewriter, parts }: Components, scope: EraseScope): Promise<number> {
  const condition = toCondition(scope);
  return rewriter.run(async () => {
    let erased = 0;
    for (const part of parts.list())
      try {
        if ((await rewriter.count(part, condition)) > 0) erased += await rewriter.rewrite([part], condition);
      } catch (error) {
        if (parts.list().includes(part)) throw error; // otherwise it is damaged and was set aside
      }
    await parts.deletionsDone();
    return erased;
  });
}

function toCondition({ project, beforeMicros }: EraseScope): Condition {
  if (beforeMicros === undefined) return { sql: 'project = $project', values: { project } };
  const before = new DuckDBTimestampValue(beforeMicros);
  return { sql: 'project = $project and timestamp < $before', values: { project, before } };
}
