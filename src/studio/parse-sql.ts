// Parses a query with DuckDB's parser, in an instance that has no data and can open none. The text is a bound value of the parse
// function: it is never executed. The instance is created on the first call, whatever the store is.
import type { DuckDBConnection, DuckDBInstance, DuckDBPreparedStatement } from '@duckdb/node-api';
import { Mutex } from '../system/mutex.ts';
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
  /** A statement has one set of bound values. */
  readonly #turns = new Mutex();

  /** Throws `invalid_parameter` unless the text is one SELECT. */
  async parse(text: string): Promise<ParsedQuery> {
    const lexed = lex(text);
    const { error, error_type, error_message, position, statements } = JSON.parse(
      await this.#serialize(lexed.sql),
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
    const parser = await this.#parser?.catch(() => undefined);
    await this.#turns.idle();
    parser?.connection.closeSync();
    parser?.instance.closeSync();
  }

  #serialize(sql: string): Promise<string> {
    this.#parser ??= openParser().catch(error => {
      this.#parser = undefined; // the next query retries
      throw error;
    });
    return this.#turns.run(async () => {
      const { statement } = (await this.#parser) as Parser;
      statement.bind({ sql });
      const result = await statement.runAndReadAll().catch(() => {
        throw refuse('the query is too complex', undefined);
      });
      const [row = []] = result.getRows();
      return String(row[0]);
    });
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
