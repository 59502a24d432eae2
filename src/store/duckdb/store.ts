// The embedded store: one DuckDB file, a pool of readers, and one writer whose appends follow one another.
import type { LogKind, LogRecord } from '../../log-record.ts';
import type { BoundValues, QueryResult, SavedQuery, Store } from '../store.ts';
import { appendRecords } from './append.ts';
import { openDatabase } from './open-database.ts';
import { ReaderPool } from './reader-pool.ts';
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
  let lastAppend: Promise<unknown> = Promise.resolve();
  let closing: Promise<void> | undefined;

  return {
    name: 'duckdb',

    findFault(query: SavedQuery, sample: BoundValues): Promise<string | undefined> {
      return readers.run(reader => findStatementFault(reader.connection, query, sample));
    },

    findPatternFault(pattern: string, signal?: AbortSignal): Promise<string | undefined> {
      return readers.run(async reader => {
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
      }, signal);
    },

    query(query: SavedQuery, values: BoundValues, signal?: AbortSignal): Promise<QueryResult> {
      return readers.run(
        async reader => runStatement(await reader.prepare(query.sql), query, values),
        signal,
      );
    },

    append(kind: LogKind, batches: AsyncIterable<readonly LogRecord[]>): Promise<void> {
      const append = lastAppend.then(() => appendRecords(writer, database.intakeFolder, kind, batches));
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
