// The embedded store: one DuckDB file, a pool of readers, and one writer whose appends follow one another.
import type { LogKind, LogRecord } from '../../log-record.ts';
import type { BoundValues, QueryCall, QueryResult, SavedQuery, Store } from '../store.ts';
import { appendRecords } from './append.ts';
import { NewestRecords } from './newest.ts';
import { openDatabase } from './open-database.ts';
import { ReaderPool, storeClosed } from './reader-pool.ts';
import { findStatementFault, runStatement } from './saved-statement.ts';

export interface DuckDBStoreOptions {
  readonly dataFolder: string;
  /** As DuckDB writes sizes: 500MB, 2GB. */
  readonly memoryLimit: string;
  readonly queryConcurrency: number;
  readonly queryQueueLength: number;
  readonly queryTimeoutSeconds: number;
}

export async function openDuckDBStore(options: DuckDBStoreOptions): Promise<Store> {
  const database = await openDatabase(options.dataFolder, options.memoryLimit);
  const readers = new ReaderPool(
    await Promise.all(Array.from({ length: options.queryConcurrency }, () => database.connect())),
    { queueLength: options.queryQueueLength, timeoutSeconds: options.queryTimeoutSeconds },
  );
  const writer = await database.connect();
  const newestRecords = await NewestRecords.read(writer, readers);
  let lastAppend: Promise<unknown> = Promise.resolve();
  let closing: Promise<void> | undefined;

  return {
    name: 'duckdb',

    async findFault(query: SavedQuery, sample: BoundValues): Promise<string | undefined> {
      const { result } = await readers.run(reader => findStatementFault(reader.connection, query, sample));
      return result;
    },

    async findPatternFault(pattern: string, call?: QueryCall): Promise<string | undefined> {
      const { result } = await readers.run(async reader => {
        const statement = await reader.prepare("select regexp_matches('', $pattern)");
        statement.bind({ pattern });
        try {
          await statement.run();
          return undefined;
        } catch (error) {
          const fault = /^Invalid Input Error: (.*)/.exec((error as Error).message)?.[1];
          if (fault === undefined) throw error;
          return fault;
        }
      }, call);
      return result;
    },

    async query(query: SavedQuery, values: BoundValues, call?: QueryCall): Promise<QueryResult> {
      const { result, waitedMs, ranMs } = await readers.run(
        async reader => runStatement(await reader.prepare(query.sql), query, values),
        call,
      );
      return { ...result, waitedMs, ranMs };
    },

    newest: (kind, notAfter, project, call) => newestRecords.find(kind, notAfter, project, call),

    append(kind: LogKind, batches: AsyncIterable<readonly LogRecord[]>): Promise<void> {
      if (closing !== undefined) return Promise.reject(storeClosed());
      const append = lastAppend.then(async () => {
        const newest = await appendRecords(writer, database.intakeFolder, kind, batches);
        if (newest !== undefined) newestRecords.note(kind, newest);
      });
      lastAppend = append.catch(() => {});
      return append;
    },

    close(): Promise<void> {
      closing ??= (async () => {
        await lastAppend;
        await readers.close();
        writer.closeSync();
        database.instance.closeSync();
      })();
      return closing;
    },
  };
}
