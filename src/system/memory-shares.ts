// A memory budget shared by several owners, such as tokens, with a dynamic limit per owner: an owner may hold at most half of what
// the others leave free. So one owner alone gets 1/2, and two get 1/3 each.

export class MemoryShares {
  readonly #limitBytes: number;
  readonly #heldByOwner = new Map<string, number>();
  #held = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The bytes that all owners hold. */
  get held(): number {
    return this.#held;
  }

  /** Whether the owner holds less than its share. */
  hasRoom(owner: string): boolean {
    return this.#freeFor(owner) > 0;
  }

  /** Returns false, and reserves nothing, if the owner would hold more than its share. */
  tryReserve(owner: string, bytes: number): boolean {
    if (bytes > this.#freeFor(owner)) return false;
    this.reserve(owner, bytes);
    return true;
  }

  /** Reserves the bytes even if the owner then holds more than its share. */
  reserve(owner: string, bytes: number): void {
    this.#heldByOwner.set(owner, (this.#heldByOwner.get(owner) ?? 0) + bytes);
    this.#held += bytes;
  }

  release(owner: string, bytes: number): void {
    const left = (this.#heldByOwner.get(owner) ?? 0) - bytes;
    if (left > 0) this.#heldByOwner.set(owner, left);
    else this.#heldByOwner.delete(owner);
    this.#held -= bytes;
  }

  /** How many more bytes the owner may hold. Negative if it holds more than its share. */
  #freeFor(owner: string): number {
    const heldByOwner = this.#heldByOwner.get(owner) ?? 0;
    const heldByOthers = this.#held - heldByOwner;
    return (this.#limitBytes - heldByOthers) / 2 - heldByOwner;
  }
}
