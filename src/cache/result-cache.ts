// An LRU cache of results, bounded in bytes and in age, with single flight for each key. The caller provides
// load(); the cache does not know SQL, endpoints or HTTP. warmer.ts refreshes its entries in the background.
import { EMPTY_LIFETIME_MS, FORCED_REFRESH_INTERVAL_MS } from '../domain/limits.ts';
import type { Timer } from '../system/timer.ts';
import { Flight, type Load } from './single-flight.ts';

export interface CacheLifetime {
  /** A cached result of this age is never returned; an empty one only for 10 s. An entry that is not requested for this long expires. */
  readonly lifetimeMs: number;
  /** The age at which a result is refreshed in the background. */
  readonly refreshAfterMs: number;
}

/** How a result was obtained, in the terms of the header Cache-Status (RFC 9211). */
export type CacheOutcome =
  /** The result was in the cache. */
  | 'hit'
  /** The result was not in the cache, so this request loaded it. */
  | 'miss'
  /** The request joined a load that was already running. */
  | 'collapsed'
  /** The client forced a refresh with no-cache. */
  | 'request';

export interface CacheResult<V> {
  readonly value: V;
  readonly outcome: CacheOutcome;
  readonly ageMs: number;
  /**
   * Time until the next refresh is due or the entry expires. Until then, the cache returns the same result, unless a refresh is
   * forced or the entry is removed.
   */
  readonly freshForMs: number;
  /** Time until the cache no longer returns this result. */
  readonly expiresInMs: number;
}

export interface CacheRequest<V> {
  readonly key: string;
  readonly lifetime: CacheLifetime;
  readonly load: Load<V>;
}

export interface GetOptions {
  /** Loads even if a result is cached, but at most once per FORCED_REFRESH_INTERVAL_MS and key. */
  readonly forceRefresh?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Who waits for the result. */
  readonly caller?: string | undefined;
}

/** Times are milliseconds of the cache's timer. */
export interface CacheEntry<V> extends CacheRequest<V> {
  value: V;
  bytes: number;
  /** The start of the load. */
  loadedAt: number;
  /** The value is not returned from then on. The entry stays for refreshes in the background. */
  expiresAt: number;
  /** The last request. A background refresh is not a request. */
  requestedAt: number;
  /** The last forced refresh; -Infinity if there was none. */
  forcedAt: number;
  /** When the next refresh in the background is due. */
  refreshAt: number;
  /** Refreshes that failed since the last successful load. */
  failures: number;
}

/** The pause after the first failed refresh of an entry. It doubles with each further failure. */
const FIRST_RETRY_MS = 5_000;

/** Estimated size of an entry without its value and its key. */
const ENTRY_OVERHEAD_BYTES = 512;

export class ResultCache<V> {
  readonly #maxBytes: number;
  readonly #sizeOf: (value: V) => number;
  readonly #isEmpty: (value: V) => boolean;
  readonly #timer: Timer;
  /** In LRU order: the least recently requested entry first. */
  readonly #entries = new Map<string, CacheEntry<V>>();
  readonly #flights = new Map<string, Flight<V>>();
  /** The last entry of `#entries`. If it is requested again, it does not have to be moved. */
  #lastRequested: CacheEntry<V> | undefined;
  bytes = 0;
  /** Background refreshes so far, including failed ones. */
  refreshes = 0;
  refreshFailures = 0;

  constructor(
    maxBytes: number,
    timer: Timer,
    sizeOf: (value: V) => number,
    isEmpty: (value: V) => boolean = () => false,
  ) {
    this.#maxBytes = maxBytes;
    this.#timer = timer;
    this.#sizeOf = sizeOf;
    this.#isEmpty = isEmpty;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns the result if it is cached. Synchronous and without a CacheRequest, because most requests end here. */
  getCached(key: string): CacheResult<V> | undefined {
    const now = this.#timer.now();
    const entry = this.#liveEntry(key, now);
    if (entry === undefined) return undefined;
    this.#touch(entry, now);
    return toResult(entry, 'hit', now);
  }

  /** Returns the cached result, or that of a new or a running load. Throws the error of the load, or the reason of the signal. */
  async get(request: CacheRequest<V>, options: GetOptions = {}): Promise<CacheResult<V>> {
    const now = this.#timer.now();
    const entry = this.#liveEntry(request.key, now);
    if (entry !== undefined) {
      this.#touch(entry, now);
      if (!options.forceRefresh || now - entry.forcedAt < FORCED_REFRESH_INTERVAL_MS)
        return toResult(entry, 'hit', now);
    }
    const { signal, caller = '' } = options;
    signal?.throwIfAborted();
    const running = this.#flights.get(request.key);
    const joined = running !== undefined && !running.cancelled;
    if (!joined && options.forceRefresh && entry !== undefined) entry.forcedAt = now;
    const flight = joined ? running : this.#start(request, caller, options.forceRefresh ? now : -Infinity);
    const value = await flight.join(caller, signal);
    const outcome = joined ? 'collapsed' : options.forceRefresh ? 'request' : 'miss';
    const loaded = this.#entries.get(request.key);
    const finishedAt = this.#timer.now();
    if (loaded?.value === value) return toResult(loaded, outcome, finishedAt);
    // The value is too large for the cache, or it was already evicted or replaced.
    return { value, outcome, ageMs: finishedAt - flight.startedAt, freshForMs: 0, expiresInMs: 0 };
  }

  /** Call this when the value of an entry has changed its size, such as a result with a new encoding. */
  updateSize(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#resize(entry);
  }

  /** Removes expired entries. Returns those whose refresh is due, most recently requested first. */
  expireAndListDue(): CacheEntry<V>[] {
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
   * Refreshes an entry in the background. If that fails, calls `onFailure`; the entry keeps its value, and the next refresh waits
   * with exponential back-off. Returns false if the refresh is no longer due, or if a load of the same key is already running.
   */
  async refresh(entry: CacheEntry<V>, onFailure: (error: unknown) => void): Promise<boolean> {
    const isDue = this.#entries.get(entry.key) === entry && this.#timer.now() >= entry.refreshAt;
    if (!isDue || this.#flights.has(entry.key)) return false;
    this.refreshes++;
    await this.#start(entry, undefined).result.catch((error: unknown) => {
      this.refreshFailures++;
      const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** entry.failures++, entry.lifetime.refreshAfterMs);
      entry.refreshAt = this.#timer.now() + backoffMs;
      onFailure(error);
    });
    return true;
  }

  /** Removes the entries with matching keys. Running loads of such keys still return their results, but these are not cached. */
  removeWhere(shouldRemove: (key: string) => boolean): void {
    for (const key of this.#flights.keys()) if (shouldRemove(key)) this.#flights.delete(key);
    for (const entry of this.#entries.values()) if (shouldRemove(entry.key)) this.#remove(entry);
  }

  #liveEntry(key: string, now: number): CacheEntry<V> | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || now >= entry.expiresAt ? undefined : entry;
  }

  /** Marks the entry as the most recently requested one, and adds it if it is new. */
  #touch(entry: CacheEntry<V>, now: number): void {
    entry.requestedAt = now;
    if (entry === this.#lastRequested) return;
    this.#lastRequested = entry;
    this.#entries.delete(entry.key);
    this.#entries.set(entry.key, entry);
  }

  #start(request: CacheRequest<V>, caller: string | undefined, forcedAt = -Infinity): Flight<V> {
    const flight = new Flight(request.load, caller, this.#timer.now());
    this.#flights.set(request.key, flight);
    /** False if the flight was removed or replaced meanwhile. */
    const removeFlight = () => this.#flights.get(request.key) === flight && this.#flights.delete(request.key);
    flight.result.then(value => {
      if (removeFlight()) this.#store(request, value, flight, forcedAt);
    }, removeFlight);
    return flight;
  }

  /** The age of a result counts from the start of its load, because the result cannot contain later records. */
  #store({ key, lifetime, load }: CacheRequest<V>, value: V, flight: Flight<V>, forcedAt: number): void {
    const existing = this.#entries.get(key);
    // An entry that expired or was evicted during its background refresh is not added again.
    if (flight.background && existing === undefined) return;
    const { startedAt } = flight;
    const entry = existing ?? { key, lifetime, load, bytes: 0, requestedAt: 0, forcedAt: -Infinity };
    const loaded = {
      value,
      loadedAt: startedAt,
      expiresAt:
        startedAt +
        (this.#isEmpty(value) ? Math.min(EMPTY_LIFETIME_MS, lifetime.lifetimeMs) : lifetime.lifetimeMs),
      forcedAt: Math.max(entry.forcedAt, forcedAt),
      refreshAt: startedAt + lifetime.refreshAfterMs,
      failures: 0,
    };
    const updated: CacheEntry<V> = Object.assign(entry, loaded);
    if (!flight.background) this.#touch(updated, this.#timer.now());
    this.#resize(updated);
  }

  #resize(entry: CacheEntry<V>): void {
    const bytes = this.#sizeOf(entry.value) + entry.key.length * 2 + ENTRY_OVERHEAD_BYTES;
    this.bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    // Remove an entry that is larger than the whole cache; otherwise it would evict all others first.
    if (bytes > this.#maxBytes) this.#remove(entry);
    for (const leastRecent of this.#entries.values()) {
      if (this.bytes <= this.#maxBytes) return;
      this.#remove(leastRecent);
    }
  }

  #remove(entry: CacheEntry<V>): void {
    this.#entries.delete(entry.key);
    if (entry === this.#lastRequested) this.#lastRequested = undefined;
    this.bytes -= entry.bytes;
  }
}

function toResult<V>(entry: CacheEntry<V>, outcome: CacheOutcome, now: number): CacheResult<V> {
  return {
    value: entry.value,
    outcome,
    ageMs: now - entry.loadedAt,
    freshForMs: Math.max(0, Math.min(entry.refreshAt, entry.expiresAt) - now),
    expiresInMs: Math.max(0, entry.expiresAt - now),
  };
}
