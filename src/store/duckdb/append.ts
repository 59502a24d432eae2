// Appends batches, such as those of a file that `dendro ingest` loads, without the spool and memtables. Each insert batch is a sorted
// run of a part. All parts of a call are committed together.
import { OperatorError } from '../../domain/errors.ts';
import { MAX_SORT_BYTES } from '../../domain/limits.ts';
import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import type { Clock } from '../../system/clock.ts';
import { batchLines, type InsertBatch } from '../batch-lines.ts';
import type { EarlierLoad, LoadContent, LoadIdentity } from '../store.ts';
import { ROW_GROUP_ROWS } from './checksum.ts';
import type { LoadEntry, Manifest, PartEntry } from './manifest.ts';
import type { NewPart } from './part-writer.ts';
import type { Parts } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import { cutLargeLines, insertLines, memoryTableColumns } from './staging.ts';
import { splitByWindow, type WindowRun } from './time-windows.ts';

/** A part with this many runs is finished. More would make queries slower until a compaction merges them. */
const MAX_RUNS = 8;

export interface AppendContext {
  readonly parts: Parts;
  /** Only used by one call at a time, as is the staging file. */
  readonly appendWriter: StoreConnection;
  readonly stagingFile: string;
  readonly clock: Clock;
}

class LoadedBefore extends Error {
  readonly load: EarlierLoad;

  constructor(load: EarlierLoad) {
    super('the same content was loaded before');
    this.load = load;
  }
}

/** Implements Store.append. Calls must not overlap. */
export async function appendLines(
  context: AppendContext,
  batches: AsyncIterable<LogLines>,
  content: LoadContent | undefined,
): Promise<EarlierLoad | undefined> {
  const { parts } = context;
  let load: LoadEntry | undefined;
  const write = async (written: PartEntry[]) => {
    const appended = new AppendedParts(context, written);
    try {
      await appended.insertAll(batches);
      const identity = content?.identify();
      const [earlier] = listLoads(parts.manifest, other => isSame(other, identity));
      const { again, restores, nowMicros: loadedAt = 0n } = content ?? {};
      if (earlier !== undefined && again === false && restores === undefined) throw new LoadedBefore(earlier);
      if (restores !== undefined && earlier?.digest !== restores.digest)
        throw new OperatorError('the file has changed while it was read; nothing was loaded');
      await appended.finish();
      const records = restores?.records ?? written.reduce((sum, part) => sum + part.records, 0);
      load = identity && { ...identity, records, loadedAt, erasedBefore: parts.manifest.erased.length };
    } catch (error) {
      await appended.discard();
      throw error;
    }
  };
  const change = ({ loads }: Manifest) =>
    load === undefined || load.records === 0
      ? {}
      : { loads: [...loads.filter(other => !isSame(other, load)), load] };
  try {
    await parts.commit({ write, change });
    return undefined;
  } catch (error) {
    if (error instanceof LoadedBefore) return error.load;
    throw error;
  }
}

function isSame(one: LoadEntry, other: LoadIdentity | undefined): boolean {
  return one.source === other?.source && one.digest === other.digest;
}

/** The loads that the manifest remembers, even after their records were removed. */
export function listLoads(
  { loads, erased }: Manifest,
  condition: (load: LoadEntry) => boolean,
): EarlierLoad[] {
  return loads.filter(condition).map(({ digest, records, loadedAt: loadedAtMicros, erasedBefore }) => ({
    ...{ digest, records, loadedAtMicros },
    erased: erased.slice(erasedBefore ?? 0),
  }));
}

/** The parts that one call writes. */
class AppendedParts {
  readonly #context: AppendContext;
  readonly #finished: PartEntry[];
  /** By kind and start of the window. */
  readonly #open = new Map<string, NewPart>();

  constructor(context: AppendContext, finished: PartEntry[]) {
    this.#context = context;
    this.#finished = finished;
  }

  /** While DuckDB inserts one batch, the next one is read. */
  async insertAll(batches: AsyncIterable<LogLines>): Promise<void> {
    const maxBytes = Math.min(MAX_SORT_BYTES, this.#context.parts.maxPartBytes);
    let inserting: Promise<void> = Promise.resolve();
    try {
      for await (const batch of batchLines(batches, ROW_GROUP_ROWS, maxBytes)) {
        await inserting;
        inserting = this.#insert(batch);
        inserting.catch(() => {}); // awaited before the next insert, or below
      }
    } finally {
      await inserting;
    }
  }

  async finish(): Promise<void> {
    for (const key of this.#open.keys()) await this.#finish(key);
  }

  /** Deletes the parts that are not finished. */
  async discard(): Promise<void> {
    for (const part of this.#open.values()) await part.discard();
  }

  async #insert({ kind, chunks }: InsertBatch): Promise<void> {
    const { parts, appendWriter: connection, stagingFile, clock } = this.#context;
    const table = 'mem.appended';
    await parts.requireDiskSpace(chunks.reduce((sum, { length }) => sum + length, 0));
    await connection.run(`create or replace table ${table} (${memoryTableColumns(kind)})`);
    try {
      for (const piece of cutLargeLines(chunks))
        await insertLines(connection, stagingFile, kind, table, piece.chunks);
      for (const run of await splitByWindow(connection, kind, table, clock())) await this.#add(kind, run);
    } finally {
      await connection.run(`drop table ${table}`);
    }
  }

  async #add(kind: LogKind, run: WindowRun): Promise<void> {
    const { appendWriter, parts } = this.#context;
    const key = `${kind} ${run.window.start}`;
    const part = this.#open.get(key) ?? (await parts.writer.create(appendWriter, kind, run.content.rows));
    this.#open.set(key, part);
    await part.add(run);
    if (part.runs >= MAX_RUNS || part.written.textBytes + MAX_SORT_BYTES > parts.maxPartBytes)
      await this.#finish(key);
  }

  async #finish(key: string): Promise<void> {
    const part = this.#open.get(key);
    if (part !== undefined) this.#finished.push(await part.finish());
    this.#open.delete(key);
  }
}
