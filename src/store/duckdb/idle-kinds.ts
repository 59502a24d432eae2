// Finds kinds whose parts are idle: their number of rows has not changed for 30 s. New records may still arrive in the
// memtable. For an idle kind, compaction starts at 2 sorted runs; for a busy one it waits for 16. Vacuum runs only if all kinds are
// idle.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { Parts } from './parts.ts';

const IDLE_MS = 30_000;

export class IdleKinds {
  readonly #parts: Parts;
  readonly #unchangedSince = new Map<LogKind, { readonly rows: number; readonly at: number }>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Call it regularly: the 30 s begin at the first call that sees the current number of rows. */
  find(): ReadonlySet<LogKind> {
    return new Set(LOG_KINDS.filter(kind => this.#isIdle(kind)));
  }

  #isIdle(kind: LogKind): boolean {
    const rows = this.#parts.list(kind).reduce((sum, part) => sum + part.rows, 0);
    const unchanged = this.#unchangedSince.get(kind);
    if (unchanged?.rows === rows) return performance.now() - unchanged.at >= IDLE_MS;
    this.#unchangedSince.set(kind, { rows, at: performance.now() });
    return false;
  }
}
