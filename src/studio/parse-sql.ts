// Parses a query with DuckDB's parser, in an instance that has no data and can open none. The text is a bound value of the parse
// function: it is never executed. The instance is created on the first call, whatever the store is.
import type { DuckDBConnection, DuckDBInstance, DuckDBPreparedStatement } from '@duckdb/node-api';
import { type QueryLimits, QueryQueue } from '../store/query-queue.ts';
import type { QueryOptions } from '../store/store.ts';
import { type LexedQuery, lex } from './lex.ts';
import { refuse } from './syntax-error.ts';

/** A node of the parse tree. */
export type TreeNode = Readonly<Record<string, unknown>>;

interface Parser {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
  readonly statement: DuckDBPreparedStatement;
}

export interface ParsedQuery {
  readonly select: TreeNode;
  readonly lexed: LexedQuery;
}

export class SqlParser {
  #parser: Promise<Parser> | undefined;
  /** One text at a time: a statement has one set of bound values. */
  readonly #queue: QueryQueue;

  constructor(limits: QueryLimits) {
    this.#queue = new QueryQueue({ ...limits, queryConcurrency: 1 });
  }

  /** Throws `invalid_parameter` unless the text is one SELECT, and what Store.query throws for its options. */
  async parse(text: string, options: QueryOptions = {}): Promise<ParsedQuery> {
    const lexed = lex(text);
    const { error, error_type, error_message, position, statements } = JSON.parse(
      await this.#serialize(lexed.sql, options),
    ) as {
      readonly error: boolean;
      readonly error_type?: string;
      readonly error_message?: string;
      readonly position?: string;
      readonly statements?: readonly { readonly node: TreeNode }[];
    };
    if (error && error_type === 'parser') {
      if (/at end of input/.test(`${error_message}`)) throw refuse('the query is incomplete', lexed.end);
      throw refuse('syntax error', lexed.positionAt(Number(position ?? -1)));
    }
    const select = statements?.[0]?.node;
    if (error || select === undefined || statements?.length !== 1)
      throw refuse('only one SELECT is supported', lexed.positionAt(0) ?? 1);
    return { select, lexed };
  }

  async close(): Promise<void> {
    await this.#queue.close();
    await this.#closeParser();
  }

  async #serialize(sql: string, options: QueryOptions): Promise<string> {
    const { result } = await this.#queue.run(async () => {
      this.#parser ??= openParser();
      try {
        const { statement } = await this.#parser;
        statement.bind({ sql });
        const [row = []] = (await statement.runAndReadAll()).getRows();
        return String(row[0]);
      } catch (error) {
        await this.#closeParser(); // it reports syntax errors in its result, so it is broken; the next query opens another
        throw error;
      }
    }, options);
    return result;
  }

  async #closeParser(): Promise<void> {
    const parser = await this.#parser?.catch(() => undefined);
    this.#parser = undefined;
    parser?.connection.closeSync();
    parser?.instance.closeSync();
  }
}

async function openParser(): Promise<Parser> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    memory_limit: '64MB',
    temp_directory: '',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    enable_external_access: 'false',
    lock_configuration: 'true',
  });
  const connection = await instance.connect();
  const statement = await connection.prepare('select json_serialize_sql($sql::varchar)');
  return { instance, connection, statement };
}
