// Appends batches, such as those of a file that `dendro ingest` loads, without the spool and memtables. Each insert batch is a sorted
// run of a part. All parts of a call are committed together.
import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines, type InsertBatch } from '../batch-lines.ts';
import type { EarlierLoad, LoadContent } from '../store.ts';
import { ROW_GROUP_ROWS } from './checksum.ts';
import type { StoreContext } from './context.ts';
import type { LoadEntry, Manifest, PartEntry } from './manifest.ts';
import { MAX_SORT_BYTES } from './memtables.ts';
import type { NewPart } from './part-writer.ts';
import type { StoreConnection } from './run-long.ts';
import { memoryTableColumns, type Staging } from './staging.ts';
import { splitByWindow, type WindowRun } from './time-windows.ts';

/** A part with this many runs is finished. More would make queries slower until a compaction merges them. */
const MAX_RUNS = 8;

export interface AppendContext extends StoreContext {
  /** Only used by one call at a time. */
  readonly appendWriter: StoreConnection;
  readonly staging: Staging;
}

/** Implements Store.append. Calls must not overlap. */
export async function appendLines(
  context: AppendContext,
  batches: AsyncIterable<LogLines>,
  content: LoadContent | undefined,
): Promise<EarlierLoad | undefined> {
  const { parts, maxPartBytes } = context;
  const appended = new AppendedParts(context);
  const maxBytes = Math.min(MAX_SORT_BYTES, maxPartBytes);
  try {
    // While DuckDB inserts one batch, the next one is read.
    let inserting: Promise<void> = Promise.resolve();
    try {
      for await (const batch of batchLines(batches, ROW_GROUP_ROWS, maxBytes)) {
        await inserting;
        inserting = appended.insert(batch);
        inserting.catch(() => {}); // awaited before the next insert, or below
      }
    } finally {
      await inserting;
    }
    const identity = content?.identify();
    const isSame = ({ source, digest }: LoadEntry) =>
      source === identity?.source && digest === identity.digest;
    const [earlier] = listLoads(parts.manifest, isSame);
    if (earlier !== undefined && content?.again === false) {
      await appended.discard();
      return earlier;
    }
    const add = await appended.finish();
    const records = add.reduce((sum, part) => sum + part.records, 0);
    if (records === 0) return undefined;
    const load = identity && { ...identity, records, loadedAt: content?.nowMicros ?? 0n };
    await parts.commit({
      add,
      change: ({ loads }) => ({ loads: load ? [...loads.filter(each => !isSame(each)), load] : loads }),
    });
    return undefined;
  } catch (error) {
    await appended.discard();
    throw error;
  }
}

/** The loads that the manifest remembers, even after their records were removed. */
export function listLoads({ loads }: Manifest, condition: (load: LoadEntry) => boolean): EarlierLoad[] {
  return loads
    .filter(condition)
    .map(({ digest, records, loadedAt }) => ({ digest, records, loadedAtMicros: loadedAt }));
}

/** The parts that one call writes. */
class AppendedParts {
  readonly #context: AppendContext;
  /** By kind and start of the window. */
  readonly #open = new Map<string, NewPart>();
  readonly #finished: PartEntry[] = [];

  constructor(context: AppendContext) {
    this.#context = context;
  }

  async insert({ kind, chunks }: InsertBatch): Promise<void> {
    const { appendWriter: connection, staging, clock } = this.#context;
    const table = 'mem.appended';
    await this.#context.requireDiskSpace(chunks.reduce((sum, { length }) => sum + length, 0));
    await connection.run(`create or replace table ${table} (${memoryTableColumns(kind)})`);
    try {
      await staging.insert((sql, values) => connection.runLong(sql, values), kind, table, chunks);
      for (const run of await splitByWindow(connection, kind, table, clock())) await this.#add(kind, run);
    } finally {
      await connection.run(`drop table ${table}`);
    }
  }

  async finish(): Promise<readonly PartEntry[]> {
    for (const [key, part] of this.#open) {
      this.#finished.push(await part.finish());
      this.#open.delete(key);
    }
    return this.#finished;
  }

  async discard(): Promise<void> {
    for (const part of this.#open.values()) await part.discard();
    await this.#context.parts.discard(this.#finished);
  }

  async #add(kind: LogKind, run: WindowRun): Promise<void> {
    const { appendWriter: connection, partWriter, maxPartBytes } = this.#context;
    const key = `${kind} ${run.window.start}`;
    const part = this.#open.get(key) ?? (await partWriter.create(connection, kind, run.content.rows));
    this.#open.set(key, part);
    await part.add(run);
    if (part.runs < MAX_RUNS && part.written.textBytes + MAX_SORT_BYTES <= maxPartBytes) return;
    this.#finished.push(await part.finish());
    this.#open.delete(key);
  }
}
