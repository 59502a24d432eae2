// What the rules made of a call, kept for the next call with the very same text, so that a cached hit need not take the
// text apart again. The rules look at the definition, the text and the highest tier, and never at the time: the same goes
// in, the same comes out. Bounded in bytes, the oldest first to go.
import type { BoundValues } from '../store/store.ts';

/** A call that keeps the rules. */
export interface ValidatedRequest {
  readonly values: BoundValues;
  /** What the cache knows it by. */
  readonly key: string;
  /** The same for a caller that is pinned to projects. */
  readonly pinnedKey: string;
}

/** Whatever the rules and the keys depend on. */
export interface RequestTarget {
  /** As it came, endpoint and query string: another text for every other endpoint. */
  readonly target: string;
  readonly maxTier?: string | undefined;
}

interface Kept extends ValidatedRequest {
  readonly maxTier: string | undefined;
  readonly bytes: number;
}

/** Room for about 5,000 calls of the usual length. */
const MAX_BYTES = 8 * 1024 * 1024;

export class ValidatedRequests {
  readonly #maxBytes: number;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get({ target, maxTier }: RequestTarget): ValidatedRequest | undefined {
    const kept = this.#kept.get(target);
    return kept?.maxTier === maxTier ? kept : undefined;
  }

  set({ target, maxTier }: RequestTarget, checked: ValidatedRequest): void {
    const bytes = estimateBytes(target);
    this.#remove(target); // kept for another tier
    this.#kept.set(target, { ...checked, maxTier, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(oldest);
    }
  }

  #remove(text: string): void {
    this.#bytes -= this.#kept.get(text)?.bytes ?? 0;
    this.#kept.delete(text);
  }
}

/** At most: the text, the values in it and the keys made of them, with room for escapes, and the objects around them. */
function estimateBytes(text: string): number {
  return 1000 + 12 * text.length;
}
