// Decides which records the spool replays. Tables of the newest flushes may not have been read back yet; the spool still has their
// records. If such a table is damaged, its records come from the spool.
import type { LogKind } from '../../../domain/log-columns.ts';
import { LOG_KINDS } from '../../../domain/log-columns.ts';
import type { Manifest } from '../manifest.ts';
import type { Unverified } from './old-store.ts';
import type { DamagedTable, ReadTable, ReadTables } from './read-tables.ts';

export interface Replay {
  readonly converted: readonly ReadTable[];
  /** Damaged tables whose records cannot be replayed. */
  readonly lost: readonly DamagedTable[];
  readonly storedUpTo: Manifest['storedUpTo'];
}

/**
 * The spool replays all records of a kind from a sequence number on. So it can replay a damaged table only if it replays all later
 * records too, and their tables must not be converted. A table that was read back does not tell its sequence numbers, so this is
 * possible only if none of the later tables was read back.
 */
export function findReplay({ readable, damaged }: ReadTables, storedUpTo: Manifest['storedUpTo']): Replay {
  const replayFrom = new Map<LogKind, number>();
  for (const kind of LOG_KINDS) {
    const first = findReplayStart(kind, { readable, damaged }, storedUpTo[kind] ?? 0);
    if (first !== undefined) replayFrom.set(kind, first);
  }
  const isReplayed = ({
    kind,
    unverified,
  }: {
    readonly kind: LogKind;
    readonly unverified: Unverified | undefined;
  }) =>
    unverified !== undefined &&
    unverified.firstSequence >= (replayFrom.get(kind) ?? Number.POSITIVE_INFINITY);
  return {
    converted: readable.filter(table => !isReplayed(table)),
    lost: damaged.filter(table => !isReplayed(table)),
    storedUpTo: { ...storedUpTo, ...Object.fromEntries(replayFrom) },
  };
}

function findReplayStart(kind: LogKind, { readable, damaged }: ReadTables, end: number): number | undefined {
  const isKind = (table: { readonly kind: LogKind }) => table.kind === kind;
  const first = Math.min(
    ...damaged.filter(isKind).map(({ unverified }) => unverified?.firstSequence ?? Number.POSITIVE_INFINITY),
  );
  const later = [...readable, ...damaged]
    .filter(isKind)
    .flatMap(({ unverified }) => unverified ?? [])
    .filter(({ firstSequence }) => firstSequence >= first)
    .sort((one, other) => one.firstSequence - other.firstSequence);
  let next = first;
  for (const { firstSequence, nextSequence } of later) if (firstSequence === next) next = nextSequence;
  return later.length > 0 && next === end ? first : undefined;
}
