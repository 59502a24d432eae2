// The embedded store: one DuckDB file and tables in memory before it, a pool of readers, and writers that take turns.
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_KINDS } from '../../log-record.ts';
import { storeClosed } from '../query-errors.ts';
import type { BoundValues, QueryCall, QueryResult, SavedQuery, Store, StoreWatch } from '../store.ts';
import { Turns } from '../turns.ts';
import { appendLines } from './append.ts';
import { Checkpoints } from './checkpoint.ts';
import { HotRecords } from './hot-records.ts';
import { Merging } from './merging.ts';
import { NewestRecords } from './newest.ts';
import { FILE_NAME, LOOK_AT_ALL, openDatabase } from './open-database.ts';
import { PatternCheck } from './pattern-check.ts';
import { ReaderPool } from './reader-pool.ts';
import { deleteBefore } from './retention.ts';
import { findStatementFault, runStatement } from './saved-statement.ts';
import { nameOf, SealedTables } from './sealed-tables.ts';
import { Staging } from './staging.ts';
import { SwapGate } from './swap-gate.ts';

/** Records are in memory several times on their way: as they are read, as they are handed over, as they are inserted. */
const FOLD_BYTES = 4 * 1024 * 1024;

export interface DuckDBStoreOptions {
  readonly dataFolder: string;
  /** As DuckDB writes sizes: 500MB, 2GB. */
  readonly memoryLimit: string;
  readonly queryConcurrency: number;
  readonly queryQueueLength: number;
  readonly queryTimeoutSeconds: number;
  /** Threads of the engine; as many as there are cores unless given. */
  readonly threads?: number | undefined;
}

export async function openDuckDBStore(options: DuckDBStoreOptions, watch: StoreWatch = {}): Promise<Store> {
  const database = await openDatabase(options.dataFolder, options.memoryLimit, options.threads);
  const gate = new SwapGate();
  const readers = await ReaderPool.open(
    await Promise.all(Array.from({ length: options.queryConcurrency }, () => database.connect())),
    { queueLength: options.queryQueueLength, timeoutSeconds: options.queryTimeoutSeconds },
    gate,
    LOOK_AT_ALL,
  );
  const [fileWriter, hotWriter, filler] = [
    await database.connect(),
    await database.connect(),
    await database.connect(),
  ];
  const sealedTables = await SealedTables.open(fileWriter);
  const patterns = new PatternCheck(readers);
  const fileTurns = new Turns();
  const checkpoints = new Checkpoints({
    connection: fileWriter,
    hasRoom: async () =>
      (await lacksRoom(options.dataFolder, await bytesOfLog(options.dataFolder))) === undefined,
    onLost: error => watch.lost?.(error),
  });
  const newestRecords = new NewestRecords(readers);
  const hotRecords = await HotRecords.open({
    hotWriter,
    fileWriter,
    sealedTables,
    checkpoints,
    fileTurns,
    staging: new Staging(database.intakeFolder, 'fold'),
    gate,
    watch,
    onFolded: (kind, table) => newestRecords.look(hotWriter, kind, table),
    needRoom: bytes => needRoom(options.dataFolder, bytes),
  });
  let calls = 0;
  const merging = new Merging({
    filler,
    fileWriter,
    fileTurns,
    sealedTables,
    checkpoints,
    needRoom: async rows =>
      needRoom(options.dataFolder, await bytesOf(options.dataFolder, sealedTables, rows)),
    countCalls: () => calls,
  });
  const appendStaging = new Staging(database.intakeFolder, 'append');
  for (const kind of LOG_KINDS) {
    const last = sealedTables.of(kind).findLast(({ rows }) => rows > 0);
    if (last === undefined) continue;
    await newestRecords.look(fileWriter, kind, nameOf(last)); // where the newest nearly always is
    await newestRecords.look(fileWriter, kind, `logs.${kind}_logs`);
  }
  let closing: Promise<void> | undefined;
  /** Closing waits for what has begun, and nothing begins after it. */
  const unlessClosing = <T>(work: () => Promise<T>): Promise<T> =>
    closing === undefined ? work() : Promise.reject(storeClosed());

  return {
    name: 'duckdb',

    async findFault(query: SavedQuery, sample: BoundValues): Promise<string | undefined> {
      const { result } = await readers.run(reader => findStatementFault(reader.connection, query, sample));
      return result;
    },

    findPatternFault: (pattern, call) => patterns.findFault(pattern, call),

    async query(query: SavedQuery, values: BoundValues, call?: QueryCall): Promise<QueryResult> {
      calls++;
      const { result, waitedMs, ranMs } = await readers.run(
        async reader => runStatement(await reader.prepare(query.sql), query, values),
        call,
      );
      return { ...result, waitedMs, ranMs };
    },

    newest: (kind, notAfter, project, call) => newestRecords.find(kind, notAfter, project, call),

    append: batches =>
      unlessClosing(() =>
        fileTurns.take(async () => {
          const kinds = await appendLines(fileWriter, sealedTables, appendStaging, batches);
          await checkpoints.take();
          for (const kind of kinds) await newestRecords.look(fileWriter, kind, `logs.${kind}_logs`);
        }),
      ),

    foldBytes: FOLD_BYTES,
    fold(records) {
      calls++;
      return unlessClosing(() => hotRecords.fold(records));
    },
    settled: kind => hotRecords.sealed(kind),
    reached: kind => hotRecords.sealed(kind), // what is in memory goes with the process
    settle: kinds => unlessClosing(() => hotRecords.settle(kinds)),
    deleteBefore: micros =>
      unlessClosing(() =>
        fileTurns.take(async () => {
          await needRoom(options.dataFolder, 0);
          const deleted = await deleteBefore(fileWriter, sealedTables, checkpoints, micros);
          newestRecords.forgetBefore(micros);
          return deleted;
        }),
      ),

    tidy: now => unlessClosing(() => merging.mergeNext(now)),

    close(): Promise<void> {
      closing ??= (async () => {
        await merging.close();
        await hotRecords.close();
        await fileTurns.done();
        await readers.close();
        for (const writer of [hotWriter, fileWriter, filler]) writer.closeSync();
        database.instance.closeSync();
      })();
      return closing;
    },
  };
}

/** For the row group that a checkpoint writes anew since something was added to it, and for the blocks it writes in. */
const SPARE_BYTES = 64 * 1024 * 1024;

/**
 * DuckDB gives up on its file until the next start where a commit or a checkpoint meets a full disk, so none is begun
 * without room for it: once in the log, once in the file.
 */
async function needRoom(folder: string, bytes: number): Promise<void> {
  const lack = await lacksRoom(folder, 2 * bytes);
  if (lack !== undefined) throw new Error(lack);
}

async function lacksRoom(folder: string, bytes: number): Promise<string | undefined> {
  const { bavail, bsize } = await statfs(folder);
  const [left, needed] = [bavail * bsize, bytes + SPARE_BYTES];
  return left < needed ? `the disk has ${left} bytes left, and ${needed} are needed` : undefined;
}

/** What is committed and not yet in the file. */
async function bytesOfLog(folder: string): Promise<number> {
  const found = await stat(join(folder, `${FILE_NAME}.wal`)).catch(() => undefined);
  return found?.size ?? 0;
}

/** About what so many rows take in the file. */
async function bytesOf(folder: string, sealedTables: SealedTables, rows: number): Promise<number> {
  const { size } = await stat(join(folder, FILE_NAME));
  const all = LOG_KINDS.flatMap(kind => sealedTables.of(kind)).reduce((sum, table) => sum + table.rows, 0);
  return Math.ceil((size * rows) / Math.max(1, all));
}
