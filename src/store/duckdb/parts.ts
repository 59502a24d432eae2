// The parts of the store: attached DuckDB files that are only read. `commit` adds and removes parts by replacing the manifest. The
// file of a removed part is deleted when the last query that uses it has finished.
//
// A start deletes only files that cannot have records which nothing else has: parts with a temporary name, which no commit has
// finished, and those that the manifest lists as removed. It does not delete a part because the manifest does not name it: the
// manifest may be an older one that an operator has restored.
import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../../domain/errors.ts';
import type { LogKind } from '../../domain/log-columns.ts';
import type { Observe } from '../../observe/event.ts';
import { readDescriptorLimit } from '../../system/descriptor-limit.ts';
import { syncDirectory } from '../../system/files.ts';
import { Mutex } from '../../system/mutex.ts';
import { storeClosed } from '../query-queue.ts';
import { type Database, quote, requireDiskSpace } from './database.ts';
import type { DuckDBConnection } from './driver.ts';
import { messageOf } from './errors.ts';
import {
  emptyManifest,
  type Manifest,
  PART_FILE,
  type PartEntry,
  readManifest,
  UnsyncedManifestError,
  writeManifest,
  writeManifestCopy,
} from './manifest.ts';
import {
  findPartProblem,
  findSizeProblem,
  hasTemporaryName,
  type PartProblem,
  partAlias,
  temporaryName,
} from './part-file.ts';
import { PartWriter } from './part-writer.ts';

/** A part whose commit is not finished. */
const TEMPORARY_FILE = /^[a-z_]+-\d{6,}\.duckdb\.tmp(\.wal)?$/;
/** Parts that were set aside, and those that a restored manifest does not name. */
const KEPT_FILE = /^[a-z_]+-\d{6,}\.duckdb\.(damaged|unnamed)$/;
/** Descriptors for everything but parts: connections, the spool, and parts that are being written. */
const OTHER_DESCRIPTORS = 64;

/**
 * A table that queries read: a memtable or a part. It counts the queries that use it, so that its table is dropped, or its file
 * deleted, only after the last of them.
 */
export class QueryTable {
  /** Qualified. */
  readonly name: string;
  #users = 0;
  #onUnused = () => {};

  constructor(name: string) {
    this.name = name;
  }

  acquire(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users === 0) this.#onUnused();
  }

  /** Resolves when no query uses the table. The caller must make sure that no further query acquires it. */
  async unused(): Promise<void> {
    if (this.#users > 0)
      await new Promise<void>(resolve => {
        this.#onUnused = resolve;
      });
  }
}

/** A part that queries can read. */
export class Part extends QueryTable {
  readonly entry: PartEntry;
  readonly alias: string;
  /** In milliseconds of `performance.now`. */
  readonly addedAt = performance.now();

  constructor(entry: PartEntry) {
    super(`${partAlias(entry.file)}.records`);
    this.entry = entry;
    this.alias = partAlias(entry.file);
  }
}

/** A change of the parts, and of other content of the manifest. */
export interface Change {
  /** Writes parts, and adds each to `written` when it is complete. */
  readonly write?: (written: PartEntry[]) => Promise<void>;
  readonly remove?: readonly Part[];
  readonly change?: (manifest: Manifest) => Partial<Manifest>;
  /** Called when the change is durable, at the moment from which on queries see it. */
  readonly onCommitted?: (() => void) | undefined;
}

interface ManifestChange extends Pick<Change, 'remove' | 'onCommitted'> {
  readonly added?: readonly Part[];
}

export interface PartsOptions {
  readonly database: Database;
  readonly observe: Observe;
  /** Called if it is unknown whether the manifest is durable. The process must exit and start again. */
  readonly onFatalError: (error: unknown) => void;
  /** Forget the parts that were set aside. */
  readonly acceptLoss?: boolean | undefined;
  /** No part becomes larger than this. Default: no limit. */
  readonly maxPartBytes?: number | undefined;
  /** How many parts there can be. Default: as many as the limit of open files allows. */
  readonly maxParts?: number | undefined;
  /** See PartWriterDependencies. */
  readonly minFilteredRecords?: number | undefined;
}

export class Parts {
  readonly writer: PartWriter;
  readonly maxPartBytes: number;
  readonly maxParts: number;
  readonly #options: PartsOptions;
  /** Attaches and detaches parts. Only used within `#commits`. */
  readonly #connection: DuckDBConnection;
  /** Held while the manifest changes. */
  readonly #commits = new Mutex();
  readonly #deletions = new Set<Promise<void>>();
  #parts: readonly Part[] = [];
  #manifest: Manifest;
  #nextPart: number;
  #hasFailed = false;
  #isClosed = false;
  #deletionError: unknown;

  private constructor(options: PartsOptions, connection: DuckDBConnection, manifest: Manifest) {
    this.#options = options;
    this.maxPartBytes = options.maxPartBytes ?? Number.POSITIVE_INFINITY;
    this.maxParts = options.maxParts ?? readDescriptorLimit() - OTHER_DESCRIPTORS;
    this.#connection = connection;
    this.#manifest = manifest;
    this.#nextPart = manifest.nextPart;
    const { partsDirectory } = options.database;
    this.writer = new PartWriter({ ...options, partsDirectory, nextPartNumber: () => this.#nextPart++ });
  }

  /** Deletes what a killed process left, attaches all parts, and sets aside those that are missing or damaged. */
  static async open(options: PartsOptions): Promise<Parts> {
    const manifest = await loadManifest(options.database);
    const parts = new Parts(options, await options.database.connect(), manifest);
    try {
      parts.#requireDescriptors(manifest.parts.length);
      await parts.#finishCommit();
      await parts.#attachAll();
      await parts.#removeLeftovers(); // not earlier: the parts that replaced removed ones may be damaged
      return parts;
    } catch (error) {
      parts.#connection.closeSync();
      throw error;
    }
  }

  /** The parts of a kind, or of all kinds, newest first. */
  list(kind?: LogKind): readonly Part[] {
    return kind === undefined ? this.#parts : this.#parts.filter(({ entry }) => entry.kind === kind);
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  get bytes(): number {
    return this.#parts.reduce((sum, { entry }) => sum + entry.bytes, 0);
  }

  storedUpTo(kind: LogKind): number {
    return this.#manifest.storedUpTo[kind] ?? 0;
  }

  /** Throws if the disk has no space for this many bytes. */
  requireDiskSpace(bytes: number): Promise<void> {
    return requireDiskSpace(this.#options.database.dataDirectory, bytes);
  }

  /**
   * Adds and removes parts. If it throws, nothing has changed, and the files of new parts are deleted. For queries, all changes and
   * `onCommitted` are one atomic step.
   */
  async commit({ write, remove = [], change = () => ({}), onCommitted }: Change): Promise<void> {
    const written: PartEntry[] = [];
    try {
      if (remove.length === 0 && write !== undefined) this.#requireDescriptors(this.#parts.length + 1);
      await write?.(written);
      await this.#commits.run(() => this.#commit(written, remove, change, onCommitted));
    } catch (error) {
      if (!this.#hasFailed) for (const { file } of written) await this.#delete(temporaryName(file)); // otherwise the manifest on disk may name them
      throw error;
    }
  }

  /** Resolves when the files of all parts that were removed so far are deleted. Throws if one cannot be deleted. */
  async deletionsDone(): Promise<void> {
    await Promise.all(this.#deletions);
    const error = this.#deletionError;
    this.#deletionError = undefined;
    if (error !== undefined) throw error;
  }

  /**
   * Reads the files of these parts, and sets aside those that are damaged or missing. Only the content of a file decides: an error
   * of the system, such as a lack of memory or descriptors, is thrown.
   */
  async setAsideDamaged(suspects: readonly Part[]): Promise<void> {
    const damaged = new Map<Part, PartProblem>();
    const throwIfClosed = () => {
      if (this.#hasFailed || this.#isClosed) throw storeClosed();
    };
    for (const part of suspects) {
      throwIfClosed();
      const found = await findPartProblem(this.#options.database.partsDirectory, part.entry, throwIfClosed);
      if (found !== undefined) damaged.set(part, found);
    }
    await this.#commits.run(async () => {
      throwIfClosed();
      const current = [...damaged].filter(([part]) => this.#parts.includes(part));
      await this.#setAside(current);
      for (const [part] of current) this.#detachLater(part);
    });
  }

  async close(): Promise<void> {
    await this.deletionsDone().catch(() => {});
    this.#isClosed = true;
    await this.#commits.idle();
    await this.writer.close();
    this.#connection.closeSync();
  }

  async #commit(
    add: readonly PartEntry[],
    remove: readonly Part[],
    change: (manifest: Manifest) => Partial<Manifest>,
    onCommitted?: () => void,
  ): Promise<void> {
    if (this.#hasFailed || this.#isClosed) throw storeClosed();
    if (remove.some(part => !this.#parts.includes(part))) throw new Error('a part was set aside meanwhile'); // if it were restored, its records would be there twice
    if (add.length > remove.length) this.#requireDescriptors(this.#parts.length - remove.length + add.length);
    const added = add.map(entry => new Part(entry));
    const { setAside } = this.#manifest;
    try {
      for (const part of added) await this.#attach(part, temporaryName(part.entry.file));
      const kept = this.#parts.filter(part => !remove.includes(part));
      const next = { added, remove, onCommitted };
      await this.#replaceManifest(change(this.#manifest), [...kept, ...added], next);
    } catch (error) {
      for (const part of added) await this.#detach(part).catch(() => {}); // it may not be attached
      throw error;
    }
    for (const part of remove) this.#detachLater(part, () => this.#delete(part.entry.file));
    for (const { file } of setAside)
      if (!this.#manifest.setAside.some(each => each.file === file))
        await this.#delete(`${file}.damaged`).catch(() => {});
  }

  /** Must be called within `#commits`, or while the store is being opened. */
  async #replaceManifest(
    change: Partial<Manifest>,
    parts: readonly Part[],
    { added = [], remove = [], onCommitted }: ManifestChange = {},
  ): Promise<void> {
    const { database, onFatalError } = this.#options;
    const sorted = [...parts].sort((a, b) => Number(b.entry.until - a.entry.until));
    const entries = sorted.map(({ entry }) => entry);
    const removed = [...(await this.#listUndeleted()), ...remove.map(({ entry }) => entry.file)];
    const next = { ...this.#manifest, ...change, nextPart: this.#nextPart, parts: entries, removed };
    try {
      await writeManifest(database.dataDirectory, next);
      await this.#removeTemporaryNames(added.map(({ entry }) => entry.file));
    } catch (error) {
      this.#hasFailed ||= error instanceof UnsyncedManifestError;
      if (this.#hasFailed) onFatalError(error);
      throw error;
    }
    this.#manifest = next;
    this.#parts = sorted;
    onCommitted?.();
    await writeManifestCopy(database.dataDirectory, next).catch(() => {}); // only an operator needs it
  }

  /** The removed parts whose files are not deleted durably: a power cut must not bring back a file that the manifest does not list. */
  async #listUndeleted(): Promise<readonly string[]> {
    const { removed } = this.#manifest;
    const undeleted = removed.filter(file => existsSync(this.#pathOf(file)));
    if (undeleted.length < removed.length) await syncDirectory(this.#options.database.partsDirectory);
    return undeleted;
  }

  /**
   * The manifest names these parts, so they get their names. Durably: a part that still had its temporary name could be deleted
   * after an operator has restored an older manifest.
   */
  async #removeTemporaryNames(files: readonly string[]): Promise<void> {
    const { partsDirectory } = this.#options.database;
    if (files.length === 0) return;
    try {
      for (const file of files) await rename(this.#pathOf(temporaryName(file)), this.#pathOf(file));
      await syncDirectory(partsDirectory);
    } catch (error) {
      throw new UnsyncedManifestError(`cannot rename new parts in ${partsDirectory}: ${messageOf(error)}`);
    }
  }

  #detachLater(part: Part, afterwards: () => Promise<void> = async () => {}): void {
    const deletion = part
      .unused()
      .then(() => this.#commits.run(() => this.#detach(part)))
      .then(afterwards)
      .catch(error => {
        this.#deletionError = error; // the next start deletes the file
        this.#options.observe({ type: 'part_deletion_failed', path: this.#pathOf(part.entry.file), error });
      })
      .finally(() => this.#deletions.delete(deletion));
    this.#deletions.add(deletion);
  }

  async #delete(file: string): Promise<void> {
    await rm(this.#pathOf(file), { force: true });
  }

  /** Throws if the file is of another part. DuckDB answers the query from the statistics of the file, however large it is. */
  async #attach({ entry, alias, name }: Part, file = entry.file): Promise<void> {
    const found = await this.#connection.runAndReadAll(
      `attach ${quote(this.#pathOf(file))} as ${alias} (read_only);
      select count(*), epoch_us(min(timestamp)), epoch_us(max(timestamp)) from ${name}`,
    );
    if (`${found.getRows()[0]}` !== `${[entry.records, entry.since, entry.until]}`)
      throw new Error('it has other records than the manifest says');
  }

  async #detach({ alias }: Part): Promise<void> {
    await this.#connection.run(`detach database if exists ${alias}`);
  }

  /** Also as parts are added: a merge needs descriptors too, and the next start needs one for each part. */
  #requireDescriptors(parts: number): void {
    const [limit, needed] = [this.maxParts + OTHER_DESCRIPTORS, parts + OTHER_DESCRIPTORS];
    if (needed > limit)
      throw new OperatorError(
        `the store has ${parts} parts and needs ${needed} file descriptors, but this process may open only ${limit}; raise the limit (ulimit -n, or LimitNOFILE of systemd)`,
      );
  }

  #pathOf(file: string): string {
    return join(this.#options.database.partsDirectory, file);
  }

  async #attachAll(): Promise<void> {
    const { database, observe, acceptLoss } = this.#options;
    const damaged: [Part, PartProblem][] = [];
    const attached: Part[] = [];
    for (const entry of this.#manifest.parts) {
      const part = new Part(entry);
      const problem = await this.#tryToAttach(part);
      if (problem === undefined) attached.push(part);
      else damaged.push([part, problem]);
    }
    this.#parts = attached;
    for (const { reason, ...entry } of this.#manifest.setAside) {
      const { kind, file } = entry;
      // The operator may have restored the file from a backup.
      if ((await findPartProblem(database.partsDirectory, entry)) === undefined) await this.#restore(entry);
      else observe({ type: 'part_set_aside', kind, file, problem: `it is ${reason}` });
    }
    await this.#setAside(damaged);
    if (acceptLoss && this.#manifest.setAside.length > 0)
      await this.#replaceManifest({ setAside: [] }, this.#parts);
  }

  /** Returns what is wrong with the file. Reads all of it only if DuckDB cannot attach it, or finds other records in it. */
  async #tryToAttach(part: Part): Promise<PartProblem | undefined> {
    const { partsDirectory } = this.#options.database;
    const sizeProblem = findSizeProblem(partsDirectory, part.entry);
    if (sizeProblem !== undefined) return sizeProblem;
    const path = this.#pathOf(part.entry.file);
    try {
      await this.#attach(part);
      return undefined;
    } catch (error) {
      await this.#detach(part);
      const problem = await findPartProblem(partsDirectory, part.entry).catch((cause: Error) => {
        throw new OperatorError(`cannot read ${path}: ${cause.message}`);
      });
      if (problem !== undefined) return problem;
      const [reason] = (error as Error).message.split('\n', 1);
      throw new OperatorError(`cannot open ${path}, although it is not damaged: ${reason}`);
    }
  }

  async #setAside(damaged: readonly (readonly [Part, PartProblem])[]): Promise<void> {
    if (damaged.length === 0) return;
    const { observe } = this.#options;
    const files = new Set(damaged.map(([{ entry }]) => entry.file));
    const erasedBefore = this.#manifest.erased.length;
    const added = damaged.map(([{ entry }, { reason }]) => ({ erasedBefore, ...entry, reason }));
    const setAside = [...this.#manifest.setAside, ...added];
    await this.#replaceManifest(
      { setAside },
      this.#parts.filter(({ entry }) => !files.has(entry.file)),
    );
    for (const file of files)
      await rename(this.#pathOf(file), this.#pathOf(`${file}.damaged`)).catch(() => {}); // it may be missing
    for (const [{ entry }, { problem }] of damaged)
      observe({ type: 'part_set_aside', kind: entry.kind, file: entry.file, problem });
  }

  async #restore(entry: PartEntry): Promise<void> {
    const part = new Part(entry);
    await this.#attach(part);
    const setAside = this.#manifest.setAside.filter(({ file }) => file !== entry.file);
    await this.#replaceManifest({ setAside }, [...this.#parts, part]);
    await this.#delete(`${entry.file}.damaged`);
  }

  /** Gives the parts of an interrupted commit their names. */
  async #finishCommit(): Promise<void> {
    const { partsDirectory } = this.#options.database;
    const files = this.#manifest.parts.map(({ file }) => file);
    await this.#removeTemporaryNames(files.filter(file => hasTemporaryName(partsDirectory, file)));
  }

  /**
   * Deletes what an interrupted write or deletion left. Renames other parts that the manifest does not name, and removed ones of a kind
   * of which a part was set aside: they can have records that nothing else has.
   */
  async #removeLeftovers(): Promise<void> {
    const { database, observe } = this.#options;
    const { parts, setAside, removed } = this.#manifest;
    const named = new Set([...parts, ...setAside].map(({ file }) => file));
    const isReplaced = (name: string) =>
      removed.includes(name) && !setAside.some(({ kind }) => name.startsWith(`${kind}-`));
    for (const name of await readdir(database.partsDirectory)) {
      const number = Number(/^[a-z_]+-(\d{6,})\.duckdb/.exec(name)?.[1] ?? 0);
      this.#nextPart = Math.max(this.#nextPart, number + 1);
      if (named.has(name) || KEPT_FILE.test(name)) continue;
      if (TEMPORARY_FILE.test(name) || isReplaced(name)) await this.#delete(name);
      else if (!PART_FILE.test(name)) observe({ type: 'foreign_file', path: this.#pathOf(name) });
      else {
        await rename(this.#pathOf(name), this.#pathOf(`${name}.unnamed`));
        observe({ type: 'unnamed_part', path: this.#pathOf(`${name}.unnamed`) });
      }
    }
  }
}

/** Creates the manifest of a new data directory. */
async function loadManifest({ dataDirectory }: Database): Promise<Manifest> {
  const manifest = readManifest(dataDirectory);
  if (manifest !== undefined) return manifest;
  const created = emptyManifest();
  await writeManifest(dataDirectory, created);
  return created;
}
