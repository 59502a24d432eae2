// An embedded store in a temporary data directory that a test can close, damage and open again.
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import type { Event } from '../../src/observe/event.ts';
import { type Manifest, parseManifest } from '../../src/store/duckdb/manifest.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { QueryOptions, QueryResult, Store } from '../../src/store/store.ts';
import { micros, NOW, testStoreOptions } from './app.ts';
import { edgeRecord } from './record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from './store.ts';

const PARTS = 'parts';

export class EmbeddedStore {
  readonly dataDirectory: string;
  readonly events: Event[] = [];
  readonly #overrides: Partial<StoreOptions>;
  #store: Store | undefined;
  #created = 0;

  private constructor(dataDirectory: string, overrides: Partial<StoreOptions>) {
    this.dataDirectory = dataDirectory;
    this.#overrides = overrides;
  }

  /** The clock of the store shows NOW. */
  static async open(
    overrides: Partial<StoreOptions> = {},
    dataDirectory = createDataDirectory(),
  ): Promise<EmbeddedStore> {
    const embedded = new EmbeddedStore(dataDirectory, overrides);
    await embedded.reopen();
    return embedded;
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error('the store is closed');
    return this.#store;
  }

  /** `events` then has only those of the new store. */
  async reopen(overrides: Partial<StoreOptions> = {}): Promise<void> {
    await this.close();
    this.events.length = 0;
    const options = { ...testStoreOptions(this.dataDirectory), clock: () => micros(NOW), ...this.#overrides };
    this.#store = await openStore(
      { ...options, ...overrides },
      { observe: event => this.events.push(event) },
    );
  }

  async close(): Promise<void> {
    await this.#store?.close();
    this.#store = undefined;
  }

  async remove(): Promise<void> {
    await this.close();
    removeDataDirectory(this.dataDirectory);
  }

  /** Records of three projects, one second apart. Their ids are n0, n1, and so on, over all calls. */
  createRecords(count: number, at: bigint = micros(NOW) - 86_400_000_000n): LogRecord[] {
    return Array.from({ length: count }, (_, i) => {
      const number = this.#created++;
      return edgeRecord({ id: `n${number}`, at: at + BigInt(i) * 1_000_000n, project: `p${number % 3}` });
    });
  }

  /** Applies and flushes records, so that they become a part of each time window. */
  async flush(records: readonly LogRecord[], kind: LogKind = 'edge'): Promise<void> {
    await this.apply(records, kind);
    await this.store.flush([kind]);
  }

  async apply(records: readonly LogRecord[], kind: LogKind = 'edge'): Promise<void> {
    const ofKind = kind === 'edge' ? records : records.map(record => ({ ...record, extracted: {} }));
    const firstSequence = this.store.flushedUpTo(kind);
    await this.store.apply({ ...toLogLines(kind, ofKind), firstSequence });
  }

  query(sql: string, options?: QueryOptions): Promise<QueryResult> {
    return this.store.query(savedQuery(sql, ['text'], 1_000_000), {}, options);
  }

  /** Sorted by number. */
  async ids(kind: LogKind = 'edge'): Promise<string[]> {
    const { rows } = await this.query(`select id from ${kind}_logs order by length(id), id`);
    return rows.map(([id]) => String(id));
  }

  eventsOf<T extends Event['type']>(type: T): Extract<Event, { type: T }>[] {
    return this.events.filter((event): event is Extract<Event, { type: T }> => event.type === type);
  }

  /** The manifest on disk. */
  get manifest(): Manifest {
    return parseManifest(readFileSync(this.pathOf('manifest.json'), 'utf8'));
  }

  /** The parts of the manifest, in the order in which they were added. */
  /** In the order in which they were written. */
  get parts(): Manifest['parts'] {
    const numberOf = (file: string) => Number(/-(\d+)/.exec(file)?.[1]);
    return this.manifest.parts.sort((a, b) => numberOf(a.file) - numberOf(b.file));
  }

  /** The names of the files in parts/. */
  get files(): string[] {
    return readdirSync(this.pathOf(PARTS)).sort();
  }

  /** The size and the content of all files in the data directory and below it. */
  readFiles(): Map<string, string> {
    const files = readdirSync(this.dataDirectory, { recursive: true, withFileTypes: true });
    return new Map(
      files
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name))
        .sort()
        .map(path => [path, readFileSync(path, 'latin1')]),
    );
  }

  pathOf(file: string): string {
    return join(this.dataDirectory, file);
  }

  partPath(file: string): string {
    return this.pathOf(join(PARTS, file));
  }
}

/**
 * Overwrites bytes of a file, at the same offset always with the same ones. They look random, because the checksum of DuckDB does not
 * notice some repeated patterns.
 */
export function overwriteRandomly(path: string, offset: number, length: number): void {
  const outputLength = Math.min(length, statSync(path).size - offset);
  const bytes = createHash('shake256', { outputLength }).update(String(offset)).digest();
  const descriptor = openSync(path, 'r+');
  try {
    writeSync(descriptor, bytes, 0, undefined, offset);
  } finally {
    closeSync(descriptor);
  }
}
