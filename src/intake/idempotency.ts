// The requests of the last ten minutes: a repeat gets the result of the first request and is not stored again.
//
// On disk, a request is in its spool segment. When the segment is deleted, its requests move to the idempotency log: one small
// `.requests` file for each deleted segment, until they expire. After a clean stop, `undelivered.json` has the keys of the requests
// with `forgetOnceDelivered` whose response may not have been delivered. An `.erased` file says which records of earlier requests
// were erased: a repeat stores these again, once.
//
// A request has one batch for each log kind. Each batch with accepted records has its own entry here and its own block in the
// spool. If a crash leaves only some of the blocks, a retry therefore stores exactly the missing ones.
import { hash } from 'node:crypto';
import { open, readdir, readFile, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type ErasedRecords, selectErased, toErasedRecords } from '../domain/erased.ts';
import { DendroError } from '../domain/errors.ts';
import { IDEMPOTENCY_TTL_MS } from '../domain/limits.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { EraseScope } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { syncDirectory, writeFileDurably } from '../system/files.ts';
import type { Timer } from '../system/timer.ts';
import {
  type CompletedRequest,
  formatRequests,
  type IntakeResult,
  parseRequestLine,
  toRemembered,
} from './completed-request.ts';
import { type EncodedBody, type ParsedBatch, type ParsedBody, selectErrors } from './parse-body.ts';

/** What the identity of a request depends on, besides its records. For OTLP, `kind` has the rules for the kind of each record. */
export interface RequestOrigin extends Pick<EncodedBody, 'kind'> {
  readonly sender: string;
  readonly idempotencyKey?: string | undefined;
}

export interface ClaimedBatch extends ParsedBatch {
  /** The result of this request or, for a repeat, of the first one. */
  readonly result: IntakeResult;
  /** There is nothing to store. If records of the first request were erased since, this is false, and the batch has only these. */
  readonly isRepeat: boolean;
  /**
   * What the spool keeps. Undefined if the kind is unknown, or if no record was accepted and there is no Idempotency-Key: a retry
   * then cannot store anything twice.
   */
  readonly request: CompletedRequest | undefined;
}

/**
 * The batches of one request. Its owner calls `stored` if the new ones were stored, and in any case `end`, once it is known whether
 * the response was delivered. `end` alone means that the request failed. Further calls do nothing.
 */
export interface Claim {
  readonly batches: readonly ClaimedBatch[];
  /** The result of the whole request. */
  readonly result: IntakeResult;
  /** Whether equal requests wait until `end` is called, even after `stored`. */
  readonly awaitsDelivery: boolean;
  /** The new batches are durable in this segment of the spool; 0 if there was nothing to write. */
  readonly stored: (segmentNumber: number) => void;
  readonly end: (isDelivered: boolean) => void;
}

/** While a request holds an entry, equal requests wait: it is not known yet what they have to store. */
interface Hold {
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** An `.erased` file. The names are part of its format. */
interface EarlierErasure extends ErasedRecords {
  /** The erasure removed records of requests in earlier segments only. */
  readonly segmentNumber: number;
}

interface Entry extends Omit<CompletedRequest, 'result' | 'atMicros'> {
  atMicros: number;
  /** When it was added, on the monotonic clock: a step of the wall clock must not change its age. */
  addedMs: number;
  /** Undefined until the records are durable. */
  result: IntakeResult | undefined;
  /** The spool segment to which the batch was written. The segment may have been deleted since. 0: none. */
  segmentNumber: number;
  /** Estimated memory. */
  bytes: number;
  hold: Hold | undefined;
}

export interface IdempotencyOptions {
  /** Of the spool. */
  readonly directory: string;
  /** If the entries take more memory, the oldest ones are evicted before they expire. */
  readonly maxBytes: number;
  /** The monotonic clock. */
  readonly timer: Pick<Timer, 'now'>;
  /** The wall clock, which the times on disk refer to. */
  readonly clock: Clock;
}

/** Measured: an entry without errors, with its strings and its place in the map. */
const ENTRY_BYTES = 512;
/** How often expired entries are evicted. */
const EVICTION_INTERVAL_MS = 1_000;
/** If the entries exceed `maxBytes`, the oldest ones are evicted until the others take this share of it. */
const EVICTION_TARGET = 0.95;
const UNDELIVERED_FILE = 'undelivered.json';

export class Idempotency {
  readonly #options: IdempotencyOptions;
  /** The oldest first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #nextEvictionMs = 0;
  /** By path of a `.requests` or `.erased` file: the time, on the monotonic clock, at which all of its requests have expired. */
  readonly #expiresAtMs = new Map<string, number>();
  /** By path of the `.erased` file. */
  readonly #erasures = new Map<string, EarlierErasure>();
  /** The keys that the last clean stop wrote. Undefined: there was no clean stop, so every response may be undelivered. */
  #undelivered: ReadonlySet<string> | undefined;

  constructor(options: IdempotencyOptions) {
    this.#options = options;
  }

  /** Estimated memory of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Finds out which batches of a request are repeats. Waits while an equal request is in flight. Throws `idempotency_conflict` if
   * the Idempotency-Key was used with a different body. The caller must end the claim; until then, equal requests wait.
   */
  async claim(origin: RequestOrigin, { batches, ...body }: ParsedBody, atMicros: number): Promise<Claim> {
    const entries: (Entry | undefined)[] = [];
    try {
      // Batches are in the order of LOG_KINDS, so all requests claim in the same order, and no two wait for each other (deadlock).
      for (const { kind, accepted } of batches) {
        const hasEntry = kind !== undefined && (accepted > 0 || origin.idempotencyKey !== undefined);
        entries.push(hasEntry ? await this.#hold(origin, kind, body, atMicros) : undefined);
      }
    } catch (error) {
      this.#createEnd(entries)(false);
      throw error;
    }
    // A batch without an entry, such as one of an unknown kind, is a repeat if another batch of the same request is a repeat.
    const hasRepeat = entries.some(entry => entry?.result !== undefined);
    const claimed = batches.map((batch, index) => {
      const entry = entries[index];
      if (entry?.result !== undefined) return this.#claimRepeat(batch, entry, entry.result, atMicros);
      const result = resultOf(batch);
      return {
        ...batch,
        result,
        isRepeat: hasRepeat && entry === undefined,
        request: entry && { ...entry, result },
      };
    });
    return {
      batches: claimed,
      result: mergeResults(claimed.map(({ result }) => result)),
      awaitsDelivery: entries.some(entry => entry?.forgetOnceDelivered),
      stored: segmentNumber => {
        for (const [index, { isRepeat, result }] of claimed.entries()) {
          const entry = entries[index];
          if (entry?.hold === undefined) continue; // the claim has ended
          if (!isRepeat) {
            entry.atMicros = atMicros;
            this.#complete(entry, result, segmentNumber, this.#options.timer.now());
          }
          if (!entry.forgetOnceDelivered) endHold(entry);
        }
      },
      end: this.#createEnd(entries),
    };
  }

  /** Of the batch, only the records that were erased after the first request are stored again. */
  #claimRepeat(batch: ParsedBatch, entry: Entry, result: IntakeResult, atMicros: number): ClaimedBatch {
    const erasures = [...this.#erasures.values()];
    const { count, lines } = selectErased(
      batch.lines,
      erasures.filter(({ segmentNumber }) => entry.segmentNumber < segmentNumber),
      { nowMicros: atMicros, firstMicros: entry.atMicros },
    );
    const records = { accepted: count, lines, rejectedByCode: {}, errors: [], quarantineLines: '' };
    const request = { ...entry, atMicros, result };
    return { ...batch, ...records, result, isRepeat: count === 0, request };
  }

  /** A function of its own, so that what waits for the delivery does not keep the lines of the batches in memory. */
  #createEnd(entries: readonly (Entry | undefined)[]): Claim['end'] {
    let isEnded = false;
    return isDelivered => {
      for (const entry of entries) if (entry !== undefined && !isEnded) this.#release(entry, isDelivered);
      isEnded = true;
    };
  }

  /** Restores the requests of the idempotency log. Skips malformed lines and reports them. */
  async load(observe: Observe): Promise<void> {
    const { directory } = this.#options;
    this.#undelivered = await readFile(join(directory, UNDELIVERED_FILE), 'utf8')
      .then(text => new Set(JSON.parse(text) as string[]))
      .catch(() => undefined);
    const names = (await readdir(directory)).sort();
    for (const name of names.filter(name => name.endsWith('.erased'))) {
      const path = join(directory, name);
      try {
        this.#erasures.set(path, JSON.parse(await readFile(path, 'utf8')) as EarlierErasure);
      } catch {
        observe({ type: 'idempotency_log_damaged', path, malformedLines: 1 });
      }
      this.#trackFile(path);
    }
    for (const name of names.filter(name => /^\d+\.requests$/.test(name))) {
      const path = join(directory, name);
      let malformedLines = 0;
      const file = await open(path);
      for await (const line of file.readLines()) {
        const request = parseRequestLine(line);
        if (request === undefined) malformedLines++;
        else this.restore(request, Number.parseInt(name, 10));
      }
      if (malformedLines > 0) observe({ type: 'idempotency_log_damaged', path, malformedLines });
      this.#trackFile(path);
    }
  }

  /**
   * Adds a request from the disk, unless it has expired, or can no longer have a repeat because its response was delivered. If its
   * time is in the future, the clock was set back: its age is 0.
   */
  restore({ result, ...request }: CompletedRequest, segmentNumber: number): void {
    const { clock, timer } = this.#options;
    if (request.forgetOnceDelivered && this.#undelivered?.has(request.key) === false) return;
    const ageMs = Math.max(0, (Number(clock()) - request.atMicros) / 1000);
    if (ageMs >= IDEMPOTENCY_TTL_MS) return;
    // Records that were erased and sent again are in a later segment, which may have been deleted before the first one.
    if ((this.#entries.get(request.key)?.segmentNumber ?? 0) > segmentNumber) return;
    this.#complete(createEntry(request), result, segmentNumber, timer.now() - ageMs);
  }

  /** Writes the requests of a segment that have not expired to the idempotency log. They are durable when the promise resolves. */
  async keepRequestsOf(segmentNumber: number): Promise<void> {
    const { directory } = this.#options;
    const requests: CompletedRequest[] = [];
    for (const entry of this.#entries.values()) {
      const { result } = entry;
      if (entry.segmentNumber !== segmentNumber || result === undefined || this.#hasExpired(entry)) continue;
      requests.push({ ...entry, result });
    }
    if (requests.length === 0) return;
    const path = join(directory, `${String(segmentNumber).padStart(12, '0')}.requests`);
    // All segments share the temporary file, so that a crash leaves at most one.
    await writeFileDurably(path, formatRequests(requests), { temporary: join(directory, 'requests.new') });
    this.#trackFile(path);
  }

  /** The records that requests stored in earlier segments are erased: repeats store them again. Durable when the promise resolves. */
  async addErasure(scope: EraseScope, segmentNumber: number): Promise<void> {
    const erased = toErasedRecords(scope);
    const name = hash('sha256', JSON.stringify(erased)).slice(0, 16);
    const path = join(this.#options.directory, `${String(segmentNumber).padStart(12, '0')}-${name}.erased`);
    const erasure = { ...erased, segmentNumber };
    await writeFileDurably(path, JSON.stringify(erasure));
    this.#erasures.set(path, erasure);
    this.#trackFile(path);
  }

  /** The paths of the complete files of the idempotency log. */
  get logFiles(): readonly string[] {
    return [...this.#expiresAtMs.keys()];
  }

  async deleteExpiredFiles(): Promise<void> {
    for (const [path, expiresAtMs] of this.#expiresAtMs) {
      if (this.#options.timer.now() < expiresAtMs) continue;
      this.#expiresAtMs.delete(path);
      this.#erasures.delete(path);
      await unlink(path);
    }
  }

  /** Call it before the first request is accepted: the list of the last stop says nothing about later requests. */
  async deleteUndelivered(): Promise<void> {
    await rm(join(this.#options.directory, UNDELIVERED_FILE), { force: true });
    await syncDirectory(this.#options.directory);
  }

  /** Call it at a clean stop. If it fails, all responses count as undelivered, as after a crash. */
  async writeUndelivered(): Promise<void> {
    const entries = [...this.#entries.values()].filter(entry => entry.forgetOnceDelivered);
    const keys = JSON.stringify(entries.map(({ key }) => key));
    await writeFileDurably(join(this.#options.directory, UNDELIVERED_FILE), keys).catch(() => {});
  }

  #trackFile(path: string): void {
    this.#expiresAtMs.set(path, this.#options.timer.now() + IDEMPOTENCY_TTL_MS);
  }

  /** Returns the entry of an earlier request, which then has a result, or a new one. */
  async #hold(
    { sender, idempotencyKey, kind: kindOrRules }: RequestOrigin,
    kind: LogKind,
    { digest, allHaveIdentity }: Omit<ParsedBody, 'batches'>,
    atMicros: number,
  ): Promise<Entry> {
    const identity = idempotencyKey === undefined ? ['body', digest] : ['key', idempotencyKey];
    // The source that an OTLP request names decides which records of the body have this kind.
    const source = typeof kindOrRules === 'string' ? [] : [kindOrRules.sourceName ?? null];
    const parts = [sender, kind, ...identity, ...source];
    const key = hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 32);
    const forgetOnceDelivered = idempotencyKey === undefined && !allHaveIdentity;
    for (;;) {
      const earlier = this.#entries.get(key);
      if (earlier === undefined || this.#hasExpired(earlier)) {
        const entry = createEntry({ key, digest, forgetOnceDelivered, atMicros });
        entry.hold = createHold();
        this.#put(entry, this.#options.timer.now());
        return entry;
      }
      if (earlier.digest !== digest) throw conflict();
      if (earlier.hold === undefined) {
        earlier.hold = createHold();
        return earlier;
      }
      await earlier.hold.ended;
    }
  }

  #complete(entry: Entry, result: IntakeResult, segmentNumber: number, addedMs: number): void {
    this.#delete(entry);
    entry.result = toRemembered(result);
    entry.segmentNumber = segmentNumber;
    const [error] = result.errors;
    entry.bytes = ENTRY_BYTES + (error === undefined ? 0 : 128 + 2 * error.message.length);
    this.#put(entry, addedMs);
  }

  /** Forgets the entry if its records were not stored, or if a delivered response makes the next equal request a new one. */
  #release(entry: Entry, isDelivered: boolean): void {
    if (entry.result === undefined || (entry.forgetOnceDelivered && isDelivered)) this.#delete(entry);
    endHold(entry);
  }

  #put(entry: Entry, addedMs: number): void {
    const previous = this.#entries.get(entry.key);
    // A Map keeps the position of an existing key, but the new entry must be the last.
    if (previous !== undefined) this.#delete(previous);
    entry.addedMs = addedMs;
    this.#entries.set(entry.key, entry);
    this.#bytes += entry.bytes;
    this.#evict();
  }

  /**
   * Evicts many entries at a time, because finding the oldest one is slow: an iteration of a Map first skips all entries that
   * were deleted from its start. If one entry were evicted for each new one, every eviction would first skip many deleted
   * entries: about half the number of entries in the index.
   */
  #evict(): void {
    const { maxBytes, timer } = this.#options;
    const isFull = this.#bytes > maxBytes;
    if (!isFull && timer.now() < this.#nextEvictionMs) return;
    this.#nextEvictionMs = timer.now() + EVICTION_INTERVAL_MS;
    const targetBytes = isFull ? maxBytes * EVICTION_TARGET : maxBytes;
    for (const oldest of this.#entries.values()) {
      if (!this.#hasExpired(oldest) && this.#bytes <= targetBytes) break;
      this.#delete(oldest);
    }
  }

  /** Does nothing if another entry has taken its place. */
  #delete(entry: Entry): void {
    if (this.#entries.get(entry.key) !== entry) return;
    this.#entries.delete(entry.key);
    this.#bytes -= entry.bytes;
  }

  #hasExpired({ addedMs }: Entry): boolean {
    return this.#options.timer.now() - addedMs >= IDEMPOTENCY_TTL_MS;
  }
}

function createEntry({
  key,
  digest,
  forgetOnceDelivered,
  atMicros,
}: Omit<CompletedRequest, 'result'>): Entry {
  const pending = { addedMs: 0, result: undefined, segmentNumber: 0, bytes: ENTRY_BYTES, hold: undefined };
  return { key, digest, forgetOnceDelivered, atMicros, ...pending };
}

function createHold(): Hold {
  let end = () => {};
  const ended = new Promise<void>(resolve => {
    end = resolve;
  });
  return { ended, end };
}

function endHold(entry: Entry): void {
  entry.hold?.end();
  entry.hold = undefined;
}

function conflict(): DendroError {
  return new DendroError(
    'idempotency_conflict',
    'this Idempotency-Key was used with a different body in the last 10 minutes; use a new key for each body',
  );
}

function resultOf({ accepted, rejectedByCode, errors }: ParsedBatch): IntakeResult {
  const rejected = Object.values(rejectedByCode).reduce((sum, count) => sum + count, 0);
  return { accepted, rejected, errors };
}

function mergeResults(results: readonly IntakeResult[]): IntakeResult {
  const [first] = results;
  if (results.length === 1 && first !== undefined) return first;
  return {
    accepted: results.reduce((sum, { accepted }) => sum + accepted, 0),
    rejected: results.reduce((sum, { rejected }) => sum + rejected, 0),
    errors: selectErrors(results.flatMap(({ errors }) => errors)),
  };
}
