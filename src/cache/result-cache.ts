// Results that stay as long as they may and no longer: one load at a time for each key, bounded in bytes, least recently
// asked first to go. It is handed load(); it knows no SQL, no endpoint and no HTTP. warmer.ts keeps its entries warm.
import type { Timer } from '../system/timer.ts';
import { Flight, type Load } from './single-flight.ts';

export interface CacheLifetime {
  /** No result older than this is ever given. Nobody asking for as long ends an entry. */
  readonly lifetimeMs: number;
  /** How old a result gets before it is loaded again in the background. */
  readonly refreshAfterMs: number;
}

/** How a result came: from the cache, by a load of its own, by another's load, by a load that was insisted on. */
export type CacheOutcome = 'hit' | 'miss' | 'collapsed' | 'request';

export interface CacheResult<V> {
  readonly value: V;
  readonly outcome: CacheOutcome;
  readonly ageMs: number;
  /** Until the next warming is due, or the entry ends: so long a copy is as good as asking again. */
  readonly freshForMs: number;
}

export interface CacheRequest<V> {
  readonly key: string;
  readonly lifetime: CacheLifetime;
  readonly load: Load<V>;
}

export interface GetOptions {
  /** Insists on a load even where a result is at hand; granted once in FORCED_LOAD_PAUSE_MS for each key. */
  readonly forceRefresh?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface CacheEntry<V> extends CacheRequest<V> {
  value: V;
  bytes: number;
  loadedAt: number;
  requestedAt: number;
  forcedAt: number;
  refreshAt: number;
  /** Warmings that failed since the last load. */
  failures: number;
}

export const FORCED_REFRESH_INTERVAL_MS = 10_000;
export const FIRST_RETRY_MS = 5_000;

/** What an entry takes besides its value and its key: the objects around them, roughly. */
const ENTRY_OVERHEAD_BYTES = 512;

export class ResultCache<V> {
  readonly #maxBytes: number;
  readonly #sizeOf: (value: V) => number;
  readonly #timer: Timer;
  /** In the order in which they were last asked for, the longest ago first. */
  readonly #entries = new Map<string, CacheEntry<V>>();
  readonly #flights = new Map<string, Flight<V>>();
  /** The last of `entries`. */
  #lastRequested: CacheEntry<V> | undefined;
  #bytes = 0;
  #closed = false;

  constructor(maxBytes: number, sizeOf: (value: V) => number, timer: Timer) {
    this.#maxBytes = maxBytes;
    this.#sizeOf = sizeOf;
    this.#timer = timer;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The result that is at hand, if it is good. Without a promise or a question, since most calls end here. */
  peek(key: string): CacheResult<V> | undefined {
    const now = this.#timer.now();
    const entry = this.#liveEntry(key, now);
    if (entry === undefined) return undefined;
    this.#touch(entry, now);
    return toResult(entry, 'hit', now);
  }

  async get(question: CacheRequest<V>, caller: GetOptions = {}): Promise<CacheResult<V>> {
    const now = this.#timer.now();
    const entry = this.#liveEntry(question.key, now);
    if (entry !== undefined) {
      this.#touch(entry, now);
      if (!caller.forceRefresh || now - entry.forcedAt < FORCED_REFRESH_INTERVAL_MS)
        return toResult(entry, 'hit', now);
    }
    const running = this.#flights.get(question.key);
    const joined = running !== undefined && !running.cancelled;
    if (!joined && caller.forceRefresh && entry !== undefined) entry.forcedAt = now;
    const flight = joined ? running : this.#start(question, false, caller.forceRefresh ? now : -Infinity);
    const value = await flight.join(caller.signal);
    const outcome = joined ? 'collapsed' : caller.forceRefresh ? 'request' : 'miss';
    const loaded = this.#entries.get(question.key);
    const after = this.#timer.now();
    if (loaded?.value === value) return toResult(loaded, outcome, after);
    return { value, outcome, ageMs: after - flight.startedAt, freshForMs: 0 }; // too large to keep, or gone already
  }

  /** Counts a value anew that has grown, as values do that are encoded when somebody first asks for an encoding. */
  updateSize(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#resize(entry);
  }

  /** Drops entries that nobody may or will get any more, and lists those to load again, most recently asked first. */
  listDue(): CacheEntry<V>[] {
    const now = this.#timer.now();
    const due: CacheEntry<V>[] = [];
    for (const entry of this.#entries.values()) {
      const { lifetimeMs } = entry.lifetime;
      if (now - entry.loadedAt >= lifetimeMs || now - entry.requestedAt >= lifetimeMs) this.#remove(entry);
      else if (now >= entry.refreshAt) due.push(entry);
    }
    return due.reverse();
  }

  /**
   * Loads an entry again in the background. A failure keeps the value at hand, and the next try waits longer. Answers
   * false where there was nothing to do any more.
   */
  async refresh(entry: CacheEntry<V>): Promise<boolean> {
    const stillDue = this.#entries.get(entry.key) === entry && this.#timer.now() >= entry.refreshAt;
    if (!stillDue || this.#flights.has(entry.key)) return false;
    await this.#start(entry, true).result.catch(() => {
      const pause = Math.min(FIRST_RETRY_MS * 2 ** entry.failures++, entry.lifetime.refreshAfterMs);
      entry.refreshAt = this.#timer.now() + pause;
    });
    return true;
  }

  /** Cancels what is being loaded, and lets go of everything. Closing twice is fine. */
  close(): void {
    this.#closed = true;
    for (const flight of this.#flights.values()) flight.cancel(new Error('the cache is closed'));
    this.#entries.clear();
    this.#lastRequested = undefined;
    this.#bytes = 0;
  }

  #liveEntry(key: string, now: number): CacheEntry<V> | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || now - entry.loadedAt >= entry.lifetime.lifetimeMs ? undefined : entry;
  }

  #touch(entry: CacheEntry<V>, now: number): void {
    entry.requestedAt = now;
    if (entry === this.#lastRequested) return;
    this.#lastRequested = entry;
    this.#entries.delete(entry.key);
    this.#entries.set(entry.key, entry);
  }

  #start(question: CacheRequest<V>, background: boolean, insistedAt = -Infinity): Flight<V> {
    const flight = new Flight(question.load, background, this.#timer.now());
    this.#flights.set(question.key, flight);
    const land = () => {
      if (this.#flights.get(question.key) === flight) this.#flights.delete(question.key);
    };
    flight.result.then(value => {
      land();
      this.#store(question, value, flight, insistedAt);
    }, land);
    return flight;
  }

  /** A result is as old as the question that it answers: its age counts from the start of its load. */
  #store({ key, lifetime, load }: CacheRequest<V>, value: V, flight: Flight<V>, insistedAt: number): void {
    const known = this.#entries.get(key);
    if (this.#closed || (flight.background && known === undefined)) return; // went while it was being warmed
    const { startedAt } = flight;
    const entry = known ?? {
      key,
      lifetime,
      load,
      value,
      bytes: 0,
      loadedAt: 0,
      requestedAt: 0,
      forcedAt: -Infinity,
      refreshAt: 0,
      failures: 0,
    };
    entry.value = value;
    entry.loadedAt = startedAt;
    entry.forcedAt = Math.max(entry.forcedAt, insistedAt);
    entry.refreshAt = startedAt + lifetime.refreshAfterMs;
    entry.failures = 0;
    if (!flight.background) this.#touch(entry, this.#timer.now());
    this.#resize(entry);
  }

  #resize(entry: CacheEntry<V>): void {
    const bytes = this.#sizeOf(entry.value) + entry.key.length * 2 + ENTRY_OVERHEAD_BYTES;
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    for (const oldest of this.#entries.values()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(oldest);
    }
  }

  #remove(entry: CacheEntry<V>): void {
    this.#entries.delete(entry.key);
    if (entry === this.#lastRequested) this.#lastRequested = undefined;
    this.#bytes -= entry.bytes;
  }
}

function toResult<V>(entry: CacheEntry<V>, outcome: CacheOutcome, now: number): CacheResult<V> {
  const end = entry.loadedAt + entry.lifetime.lifetimeMs;
  return {
    value: entry.value,
    outcome,
    ageMs: now - entry.loadedAt,
    freshForMs: Math.max(0, Math.min(entry.refreshAt, end) - now),
  };
}
