// Compares the cache with a simple model of it, for random sequences of requests, failures, disconnects and pauses.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type GetOptions, ResultCache } from '../../src/cache/result-cache.ts';
import { Warmer } from '../../src/cache/warmer.ts';
import { FORCED_REFRESH_INTERVAL_MS } from '../../src/domain/limits.ts';
import { CountedLoad } from '../support/counted-load.ts';
import { ManualTimer } from '../support/manual-timer.ts';

const lifetime = { lifetimeMs: 900_000, refreshAfterMs: 300_000 };
const KEYS = ['a', 'b', 'c', 'd', 'e'];
const MAX_ENTRIES = 3;
const VALUE_BYTES = 100_000;

interface ModelEntry {
  readonly key: string;
  readonly value: number;
  readonly loadedAt: number;
  forcedAt: number;
}

/** The expected behaviour in its simplest form: a list in LRU order and a clock. */
class Model {
  now = 0;
  failing = false;
  loads = 0;
  entries: ModelEntry[] = [];

  /** Also finds entries that are too old to be returned. */
  findAny(key: string): ModelEntry | undefined {
    return this.entries.find(candidate => candidate.key === key);
  }

  find(key: string): ModelEntry | undefined {
    const entry = this.findAny(key);
    return entry !== undefined && this.now - entry.loadedAt < lifetime.lifetimeMs ? entry : undefined;
  }

  touch(entry: ModelEntry): void {
    this.entries = [...this.entries.filter(other => other.key !== entry.key), entry].slice(-MAX_ENTRIES);
  }
}

class Real {
  readonly timer = new ManualTimer();
  readonly store = new CountedLoad(this.timer);
  readonly cache = new ResultCache<number>(MAX_ENTRIES * VALUE_BYTES + 10_000, this.timer, () => VALUE_BYTES);

  get(key: string, options: GetOptions = {}) {
    return this.cache.get({ key, lifetime, load: this.store.load }, options);
  }
}

class Get implements fc.AsyncCommand<Model, Real> {
  readonly key: string;
  readonly forceRefresh: boolean;
  constructor(key: string, forceRefresh: boolean) {
    this.key = key;
    this.forceRefresh = forceRefresh;
  }
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    const existing = model.find(this.key);
    const isForced =
      this.forceRefresh &&
      (existing === undefined || model.now - existing.forcedAt >= FORCED_REFRESH_INTERVAL_MS);
    if (existing !== undefined) model.touch(existing);
    const result = real.get(this.key, { forceRefresh: this.forceRefresh });
    if (existing !== undefined && !isForced) {
      const ageMs = model.now - existing.loadedAt;
      expect(await result).toMatchObject({ value: existing.value, outcome: 'hit', ageMs });
      return;
    }
    model.loads++;
    if (isForced && existing !== undefined) existing.forcedAt = model.now;
    if (model.failing) {
      await expect(result).rejects.toThrow('the store is unavailable');
    } else {
      const outcome = this.forceRefresh ? 'request' : 'miss';
      expect(await result).toMatchObject({ value: model.loads, outcome, ageMs: 0 });
      const forcedAt = this.forceRefresh ? model.now : (model.findAny(this.key)?.forcedAt ?? -Infinity);
      model.touch({ key: this.key, value: model.loads, loadedAt: model.now, forcedAt });
    }
    expect(real.store.runs).toBe(model.loads);
  }
  toString = () => `get(${this.key}${this.forceRefresh ? ', forceRefresh' : ''})`;
}

class Advance implements fc.AsyncCommand<Model, Real> {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    model.now += this.ms;
    await real.timer.advance(this.ms);
  }
  toString = () => `advance(${this.ms})`;
}

class Fail implements fc.AsyncCommand<Model, Real> {
  readonly failing: boolean;
  constructor(failing: boolean) {
    this.failing = failing;
  }
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    model.failing = this.failing;
    real.store.failing = this.failing;
  }
  toString = () => `fail(${this.failing})`;
}

class Disconnect implements fc.AsyncCommand<Model, Real> {
  readonly key: string;
  constructor(key: string) {
    this.key = key;
  }
  check = (model: Readonly<Model>) => model.find(this.key) === undefined;
  async run(model: Model, real: Real): Promise<void> {
    const controller = new AbortController();
    real.store.tookMs = 1_000;
    const result = real.get(this.key, controller);
    controller.abort(new Error('disconnected'));
    await expect(result).rejects.toThrow('disconnected');
    real.store.tookMs = 0;
    model.loads++;
  }
  toString = () => `disconnect(${this.key})`;
}

describe('the cache compared with a simple model', () => {
  test('every result, load and eviction is the same', async () => {
    const commands = fc.commands(
      [
        fc
          .tuple(fc.constantFrom(...KEYS), fc.boolean())
          .map(([key, forceRefresh]) => new Get(key, forceRefresh)),
        fc.constantFrom(...KEYS).map(key => new Get(key, false)),
        fc.oneof(fc.nat(20_000), fc.nat(1_000_000)).map(ms => new Advance(ms)),
        fc.boolean().map(failing => new Fail(failing)),
        fc.constantFrom(...KEYS).map(key => new Disconnect(key)),
      ],
      { maxCommands: 60 },
    );
    await fc.assert(
      fc.asyncProperty(commands, async sequence => {
        await fc.asyncModelRun(() => ({ model: new Model(), real: new Real() }), sequence);
      }),
      { numRuns: 1_000 },
    );
  });

  test('with a warmer, no result is 900 s old, no key has two loads at a time, and all entries expire', async () => {
    const step = fc.record({
      key: fc.constantFrom(...KEYS),
      advanceMs: fc.oneof(fc.nat(5_000), fc.nat(200_000)),
      tookMs: fc.constantFrom(0, 0, 50, 20_000),
      failing: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async steps => {
        const { timer, store, cache } = new Real();
        const warmer = new Warmer(cache, timer);
        warmer.start();
        const loading = new Map<string, number>();
        const ages: number[] = [];
        for (const { key, advanceMs, tookMs, failing } of steps) {
          Object.assign(store, { tookMs, failing });
          const load: typeof store.load = async (signal, priority) => {
            loading.set(key, (loading.get(key) ?? 0) + 1);
            expect(loading.get(key)).toBe(1);
            return store.load(signal, priority).finally(() => loading.set(key, 0));
          };
          cache.get({ key, lifetime, load }).then(
            ({ ageMs }) => ages.push(ageMs),
            () => {},
          );
          await timer.advance(advanceMs);
        }
        Object.assign(store, { tookMs: 0, failing: false });
        await timer.advance(2 * lifetime.lifetimeMs);
        for (const age of ages) expect(age).toBeLessThan(lifetime.lifetimeMs);
        expect(cache.size).toBe(0);
        expect(cache.bytes).toBe(0);
        warmer.stop();
      }),
      { numRuns: 100 },
    );
  });
});
