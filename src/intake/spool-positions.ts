// Tracks how far the store has applied the blocks of each kind. A kind that the store fails to apply stays behind while the
// others advance. Only one window of blocks is in memory at a time: a kind that stayed behind reads its blocks from the
// segments again.
import type { LogKind } from '../domain/log-columns.ts';
import type { SpoolBlock } from './spool-block.ts';
import type { SpoolSegment } from './spool-segment.ts';

/** A contiguous range of one segment, read in one step. */
export interface SpoolWindow {
  /** The unapplied blocks of `kinds`, in the order of their append. */
  readonly blocks: readonly SpoolBlock[];
  /**
   * Of the kinds passed to `read`, those whose position is in this window. `confirm` advances these positions. The other kinds
   * have a later position and need another `read`.
   */
  readonly kinds: readonly LogKind[];
  /** Marks the blocks as applied, except those of the failed kinds, which are read again. */
  confirm(failedKinds?: ReadonlyMap<LogKind, unknown>): void;
}

/** The start of the first unapplied block of a kind, or a block boundary before it. */
interface Position {
  segment: SpoolSegment;
  offset: number;
  /** Length of the kind's blocks after this position. Never 0. */
  unappliedBytes: number;
  /** When these blocks were appended, the oldest first. Blocks appended within MERGE_MS share an element. */
  readonly appended: { bytes: number; readonly atMs: number }[];
}

/** Limits the length of `Position.appended`. */
const MERGE_MS = 1_000;

export class SpoolPositions {
  /** The array of the spool itself: the spool adds and deletes segments. */
  readonly #segments: readonly SpoolSegment[];
  /** Only kinds with unapplied blocks. */
  readonly #positions = new Map<LogKind, Position>();

  /** All blocks in the segments count as unapplied. The store skips those that it has. */
  constructor(segments: readonly SpoolSegment[]) {
    this.#segments = segments;
    for (const segment of segments)
      for (const [kind, bytes] of segment.bytesOfKind) this.add(kind, bytes, segment, 0, segment.createdAtMs);
  }

  /**
   * Adds unapplied blocks of a kind that are in a segment, at or after an offset. `atMs`: when they were appended, in Unix
   * milliseconds.
   */
  add(kind: LogKind, bytes: number, segment: SpoolSegment, offset: number, atMs: number): void {
    let position = this.#positions.get(kind);
    if (position === undefined) {
      position = { segment, offset, unappliedBytes: 0, appended: [] };
      this.#positions.set(kind, position);
    }
    position.unappliedBytes += bytes;
    const last = position.appended.at(-1);
    if (last !== undefined && atMs - last.atMs < MERGE_MS) last.bytes += bytes;
    else position.appended.push({ bytes, atMs });
  }

  /**
   * When the oldest unapplied block was appended, in Unix milliseconds; up to MERGE_MS too early. For a block that an earlier
   * process appended, this is the time at which its segment was created. Undefined if there is no unapplied block.
   */
  get oldestAtMs(): number | undefined {
    const times = [...this.#positions.values()].flatMap(({ appended }) => appended[0]?.atMs ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  get unappliedKinds(): LogKind[] {
    return [...this.#positions.keys()];
  }

  unappliedBytesOf(kind: LogKind): number {
    return this.#positions.get(kind)?.unappliedBytes ?? 0;
  }

  /** Whether the segment may have unapplied blocks. Can be true for a while after its last block was applied. */
  mayHaveUnapplied(segment: SpoolSegment): boolean {
    return [...this.#positions].some(
      ([kind, position]) => position.segment.number <= segment.number && segment.bytesOfKind.has(kind),
    );
  }

  /** Whether all unapplied blocks are in segments with a higher number. */
  isAppliedThrough(segmentNumber: number): boolean {
    return this.unappliedKinds.every(
      kind => (this.#moveToNextSegment(kind)?.segment.number ?? Number.POSITIVE_INFINITY) > segmentNumber,
    );
  }

  /** Reads about `maxBytes` from the earliest position of these kinds. */
  async read(kinds: readonly LogKind[], maxBytes: number): Promise<SpoolWindow> {
    const positions = kinds.flatMap(kind => this.#moveToNextSegment(kind) ?? []);
    const [earliest] = positions.sort((a, b) => a.segment.number - b.segment.number || a.offset - b.offset);
    if (earliest === undefined) return { blocks: [], kinds: [], confirm: () => {} };
    const { segment } = earliest;
    const { blocks, end } = await segment.readValid(earliest.offset, maxBytes);
    const offsets = new Map<LogKind, number>();
    for (const kind of kinds) {
      const position = this.#positions.get(kind);
      if (position?.segment === segment && position.offset < end) offsets.set(kind, position.offset);
    }
    const unapplied = blocks.filter(
      ({ header, offset }) => offset >= (offsets.get(header.kind) ?? Number.POSITIVE_INFINITY),
    );
    const confirm = (failedKinds?: ReadonlyMap<LogKind, unknown>) => {
      for (const kind of offsets.keys())
        if (failedKinds?.has(kind) !== true) this.#advance(kind, unapplied, end);
    };
    return { blocks: unapplied, kinds: [...offsets.keys()], confirm };
  }

  #advance(kind: LogKind, blocks: readonly SpoolBlock[], end: number): void {
    const position = this.#positions.get(kind);
    if (position === undefined) return;
    let appliedBytes = 0;
    for (const { header, blockBytes } of blocks) if (header.kind === kind) appliedBytes += blockBytes;
    position.unappliedBytes -= appliedBytes;
    removeOldest(position.appended, appliedBytes);
    position.offset = end;
    if (position.unappliedBytes === 0) this.#positions.delete(kind);
  }

  /** If the position is at the end of its segment, moves it to the start of the next segment that has blocks of the kind. */
  #moveToNextSegment(kind: LogKind): Position | undefined {
    const position = this.#positions.get(kind);
    if (position === undefined || position.offset < position.segment.validBytes) return position;
    const later = this.#segments.slice(this.#segments.indexOf(position.segment) + 1);
    const next = later.find(segment => segment.bytesOfKind.has(kind));
    if (next === undefined) return position;
    position.segment = next;
    position.offset = 0;
    return position;
  }
}

function removeOldest(appended: Position['appended'], bytes: number): void {
  let left = bytes;
  for (let oldest = appended[0]; oldest !== undefined && left > 0; oldest = appended[0]) {
    const removed = Math.min(left, oldest.bytes);
    oldest.bytes -= removed;
    left -= removed;
    if (oldest.bytes === 0) appended.shift();
  }
}
