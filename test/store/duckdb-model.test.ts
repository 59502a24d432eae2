// Random operations on an embedded store, compared with a model of the records that it must return. A failure prints the operations.
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { unpack } from '../../src/backup/unpack.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { windowOf } from '../../src/store/duckdb/time-windows.ts';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';
import { useDirectory } from '../support/hooks.ts';
import { edgeRecord, record } from '../support/record.ts';
import { removeDataDirectory } from '../support/store.ts';

const DAY = 86_400_000_000n;
const NOW_MICROS = micros(NOW);
const KINDS = ['edge', 'auth'] as const;
const PROJECTS = ['p', '', '\ufeff', 'zero\0', "quote'", '\u{1f600}', '\uffff', 'a'.repeat(3000)];

type Kind = (typeof KINDS)[number];

const daysAgo = (days: number) => NOW_MICROS - BigInt(days) * DAY;
const days = fc.integer({ min: 0, max: 90 });
const batch = {
  kind: fc.constantFrom(...KINDS),
  project: fc.constantFrom(...PROJECTS),
  ages: fc.array(days, { minLength: 1, maxLength: 12 }),
};
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('apply'), ...batch }) },
  fc.record({ type: fc.constant('append'), ...batch, digest: fc.nat(3), again: fc.boolean() }),
  { weight: 3, arbitrary: fc.record({ type: fc.constant('flush') }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('compact') }) },
  fc.record({ type: fc.constant('expire'), age: days, micros: fc.nat(1), rewrites: fc.boolean() }),
  fc.record({ type: fc.constant('evict'), percent: fc.integer({ min: 0, max: 99 }) }),
  fc.record({ type: fc.constant('erase'), project: batch.project, before: fc.option(days) }),
  fc.record({ type: fc.constant('reopen') }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;
type Batch = { readonly kind: Kind; readonly project: string; readonly ages: readonly number[] };

let embedded: EmbeddedStore;
const copy = useDirectory();
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => vi.useRealTimers());

class Model {
  /** All records that were stored and not removed. */
  readonly #stored = new Map<string, { readonly kind: Kind; readonly record: LogRecord }>();
  /** All records that were applied, in the order of their sequence numbers. */
  readonly #spool: Record<Kind, LogRecord[]> = { edge: [], auth: [] };
  readonly #loads = new Set<string>();
  #expiredBefore = 0n;
  #created = 0;

  async run(each: Operation): Promise<void> {
    const { store } = embedded;
    if (each.type === 'apply') await this.#apply(each.kind, this.#create(each));
    if (each.type === 'append') await this.#append(each, `${each.digest}`, each.again);
    if (each.type === 'flush') await store.flush(KINDS);
    if (each.type === 'compact') await this.#compact();
    if (each.type === 'expire') await this.#expire(daysAgo(each.age) + BigInt(each.micros), each.rewrites);
    if (each.type === 'evict') await this.#evict(each.percent);
    if (each.type === 'erase') await this.erase(each.project, each.before ?? undefined);
    if (each.type === 'reopen') await this.#reopen();
    await this.check();
  }

  /** Compares the store with the model. */
  async check(): Promise<void> {
    for (const kind of KINDS) {
      const { rows } = await embedded.query(`select id from ${kind}_logs`);
      expect(rows.flat().sort()).toEqual(this.ids(kind));
      const newest = this.#visible(kind).filter(({ project }) => project === 'p');
      const expected = newest
        .map(({ timestampMicros }) => timestampMicros)
        .sort((a, b) => a - b)
        .at(-1);
      const found = await embedded.store.newestTimestamp(kind, NOW_MICROS, 'p');
      expect(found).toBe(expected === undefined ? undefined : BigInt(expected));
    }
    for (const { since, until } of embedded.parts)
      expect(windowOf(since, NOW_MICROS)).toEqual(windowOf(until, NOW_MICROS));
  }

  ids(kind: Kind): string[] {
    return this.#visible(kind)
      .map(({ id }) => id)
      .sort();
  }

  async erase(project: string, before?: number): Promise<void> {
    const beforeMicros = before === undefined ? undefined : daysAgo(before);
    const isErased = (each: LogRecord) =>
      each.project === project && (beforeMicros === undefined || BigInt(each.timestampMicros) < beforeMicros);
    await embedded.store.flush(KINDS); // records in memtables are not erased
    const erased = await embedded.store.eraseProject({ project, beforeMicros });
    const matching = [...this.#stored.values()].filter(({ record: each }) => isErased(each));
    expect(erased).toBeLessThanOrEqual(matching.length); // expired records may be gone already
    for (const { record: each } of matching) this.#stored.delete(each.id);
  }

  #visible(kind: Kind): LogRecord[] {
    return [...this.#stored.values()]
      .filter(each => each.kind === kind && BigInt(each.record.timestampMicros) >= this.#expiredBefore)
      .map(each => each.record);
  }

  #create({ kind, project, ages }: Batch): LogRecord[] {
    const create = kind === 'edge' ? edgeRecord : record;
    return ages.map(age => create({ id: `n${this.#created++}`, at: daysAgo(age), project }));
  }

  async #apply(kind: Kind, records: readonly LogRecord[]): Promise<void> {
    const firstSequence = this.#spool[kind].length;
    await embedded.store.apply({ ...toLogLines(kind, records), firstSequence });
    this.#spool[kind].push(...records);
    this.#add(kind, records);
  }

  async #append(draft: Batch, digest: string, again: boolean): Promise<void> {
    const { kind } = draft;
    const records = this.#create(draft);
    const isKnown = this.#loads.has(`${kind} ${digest}`);
    const content = { identify: () => ({ source: kind, digest, fileBytes: 1 }), nowMicros: 5n, again };
    const earlier = await embedded.store.append(
      (async function* () {
        yield toLogLines(kind, records);
      })(),
      content,
    );
    expect(earlier === undefined).toBe(again || !isKnown);
    if (earlier === undefined) this.#add(kind, records);
    this.#loads.add(`${kind} ${digest}`);
  }

  #add(kind: Kind, records: readonly LogRecord[]): void {
    for (const each of records) this.#stored.set(each.id, { kind, record: each });
  }

  async #compact(): Promise<void> {
    vi.advanceTimersByTime(30_000);
    while (await embedded.store.maintain('compact'));
  }

  async #expire(before: bigint, rewrites: boolean): Promise<void> {
    if (before > this.#expiredBefore) this.#expiredBefore = before;
    const expiredBefore = this.#expiredBefore;
    const rewriteBefore = rewrites ? expiredBefore : 0n;
    await embedded.store.maintain({ expire: { expiredBefore, rewriteBefore } });
    for (const { until } of embedded.parts) expect(until >= expiredBefore).toBe(true);
  }

  /** Eviction removes whole parts, oldest first. The model does not know which records a part has. */
  async #evict(percent: number): Promise<void> {
    const before = embedded.manifest.parts;
    const limit = (before.reduce((sum, { bytes }) => sum + bytes, 0) * percent) / 100;
    const evicted = await embedded.store.maintain({ evictTo: limit });
    const kept = embedded.manifest.parts;
    const sumOf = (parts: typeof kept, key: 'bytes' | 'records') =>
      parts.reduce((sum, part) => sum + part[key], 0);
    expect(sumOf(kept, 'bytes')).toBeLessThanOrEqual(limit);
    expect(evicted).toBe(sumOf(before, 'records') - sumOf(kept, 'records'));
    expect(before.slice(0, kept.length)).toEqual(kept); // newest first
    for (const kind of KINDS) {
      const { rows } = await embedded.query(`select id from ${kind}_logs`);
      const returned = new Set(rows.flat());
      const missing = this.#visible(kind).filter(({ id }) => !returned.has(id));
      expect(missing.length).toBeLessThanOrEqual(evicted);
      for (const { id } of missing) this.#stored.delete(id);
    }
  }

  /** A process that ends loses its memtables. The next one applies the rest of the spool. */
  async #reopen(): Promise<void> {
    await embedded.reopen();
    expect(embedded.files).toEqual(embedded.parts.map(({ file }) => file).sort());
    for (const kind of KINDS) {
      const firstSequence = embedded.store.flushedUpTo(kind);
      const rest = this.#spool[kind].slice(firstSequence);
      if (rest.length > 0) await embedded.store.apply({ ...toLogLines(kind, rest), firstSequence });
    }
  }
}

test('a store returns the records of a model after random operations, and so does a snapshot of it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 20 }), async operations => {
      embedded = await EmbeddedStore.open();
      const model = new Model();
      try {
        for (const each of operations) await model.run(each);
        await embedded.store.flush(KINDS);
        const snapshot = embedded.store.snapshot(new Set());
        const expected = KINDS.map(kind => model.ids(kind));
        await model.erase('p');
        await model.check();
        removeDataDirectory(copy);
        await unpack(snapshot.files, copy);
        await snapshot.close();
        const copied = await EmbeddedStore.open({}, copy);
        const ids = await Promise.all(
          KINDS.map(async kind => (await copied.query(`select id from ${kind}_logs`)).rows.flat().sort()),
        );
        await copied.close();
        expect(ids).toEqual(expected);
      } finally {
        await embedded.remove();
      }
    }),
    { numRuns: 15 },
  );
});
