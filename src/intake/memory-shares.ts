// Memory that senders share. A sender may hold at most half of what the other senders leave free, so a sender that holds as
// much as it can never takes the memory of the others: one gets 1/2 of it, two get 1/3 each.

export class MemoryShares {
  readonly #limit: number;
  readonly #heldBySender = new Map<string, number>();
  #held = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The bytes that all senders hold. */
  get held(): number {
    return this.#held;
  }

  /** Returns false, and reserves nothing, if the sender would hold more than its share. */
  tryReserve(sender: string, bytes: number): boolean {
    const heldBySender = this.#heldBySender.get(sender) ?? 0;
    const heldByOthers = this.#held - heldBySender;
    if (heldBySender + bytes > (this.#limit - heldByOthers) / 2) return false;
    this.#heldBySender.set(sender, heldBySender + bytes);
    this.#held += bytes;
    return true;
  }

  release(sender: string, bytes: number): void {
    const left = (this.#heldBySender.get(sender) ?? 0) - bytes;
    if (left > 0) this.#heldBySender.set(sender, left);
    else this.#heldBySender.delete(sender);
    this.#held -= bytes;
  }
}
