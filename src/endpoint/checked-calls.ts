// What the rules made of a call, kept for the next call with the very same query string, so that a cached hit need not
// take the string apart again. The rules look at the definition, the string and the highest tier, and never at the
// time: the same goes in, the same comes out. Bounded in bytes, the oldest first to go.
import type { BoundValues } from '../store/store.ts';

/** A call that keeps the rules. */
export interface CheckedCall {
  readonly values: BoundValues;
  /** What the cache knows it by. */
  readonly key: string;
}

/** Whatever the rules and the key depend on. */
export interface UncheckedCall {
  readonly endpointId: string;
  /** The query string as it came. */
  readonly text: string;
  readonly highestTier: string | undefined;
  /** Asked with a token that is pinned to projects: the key holds the project. */
  readonly pinned: boolean;
}

interface Kept extends CheckedCall {
  readonly highestTier: string | undefined;
  readonly bytes: number;
}

/** Room for about 5,000 calls of the usual length. */
const MAX_BYTES = 8 * 1024 * 1024;

export class CheckedCalls {
  readonly #maxBytes: number;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  find(call: UncheckedCall): CheckedCall | undefined {
    const kept = this.#kept.get(nameOf(call));
    return kept?.highestTier === call.highestTier ? kept : undefined;
  }

  keep(call: UncheckedCall, { values, key }: CheckedCall): void {
    const name = nameOf(call);
    const bytes = estimateBytes(call);
    this.#remove(name); // kept for another tier
    this.#kept.set(name, { values, key, highestTier: call.highestTier, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(oldest);
    }
  }

  #remove(name: string): void {
    this.#bytes -= this.#kept.get(name)?.bytes ?? 0;
    this.#kept.delete(name);
  }
}

/** An id has always the same length, so no text can pretend to be part of it. */
function nameOf({ endpointId, pinned, text }: UncheckedCall): string {
  return `${endpointId}${pinned ? '!' : '?'}${text}`;
}

/** At most: the string, the values in it and the key made of them, with room for escapes, and the objects around them. */
function estimateBytes({ text }: UncheckedCall): number {
  return 1000 + 8 * text.length;
}
