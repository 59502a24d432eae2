// Checks the parsed SQL of an endpoint: tables and table functions must be on an allow-list, and other functions must have no
// side effects. A SELECT can call functions that change the engine or read files, and neither a read-only transaction nor
// DuckDB's lock of the configuration prevents all of them.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';

/** Allowed: they only return rows from their arguments. All others are refused: some change settings, read files or metadata. */
const TABLE_FUNCTIONS = ['generate_series', 'json_each', 'json_tree', 'range', 'unnest'];

/**
 * The functions that DuckDB marks as having side effects, except those that change nothing, such as random(). Reading the marks from
 * DuckDB would take a twentieth of a start; a test compares them with this list.
 */
export const FORBIDDEN_FUNCTIONS = [
  'current_connection_id',
  'current_query',
  'current_query_id',
  'current_transaction_id',
  'currval',
  'nextval',
  'setseed',
  'stats',
  'write_log',
];

/** All views that DuckDB itself has in its search path. A test compares them with this expression. */
export const SYSTEM_VIEW = /^(duckdb|pg|pragma|sqlite)_/;

/** The allowed tables. */
const TABLES = LOG_KINDS.map(kind => `${kind}_logs`);

/** What the SQL of an endpoint uses, from its parse tree. Names are in lower case. */
export interface SqlReferences {
  readonly tableFunctions: Set<string>;
  readonly functions: Set<string>;
  /** With their schema, if the SQL names it. Includes references to common table expressions. */
  readonly tables: Set<string>;
  readonly commonTableExpressions: Set<string>;
  /** Whether it contains DESCRIBE, SHOW or SUMMARIZE. */
  hasShow: boolean;
}

/** Returns undefined if the SQL is not a SELECT. Parses the SQL and does not bind it, so no function of it is called. */
export async function parseReferences(
  connection: DuckDBConnection,
  sql: string,
): Promise<SqlReferences | undefined> {
  const statement = await connection.prepare('select json_serialize_sql($sql::varchar)');
  statement.bind({ sql });
  const [row = []] = (await statement.runAndReadAll()).getRows();
  const tree = JSON.parse(String(row[0])) as { error: boolean };
  if (tree.error) return undefined;
  const references: SqlReferences = {
    tableFunctions: new Set(),
    functions: new Set(),
    tables: new Set(),
    commonTableExpressions: new Set(),
    hasShow: false,
  };
  collect(tree, references);
  return references;
}

/** Returns the first function that is not allowed, as a sentence, or undefined. */
export function findForbiddenFunction({ tableFunctions, functions }: SqlReferences): string | undefined {
  const tableFunction = [...tableFunctions].find(name => !TABLE_FUNCTIONS.includes(name));
  if (tableFunction !== undefined)
    return `calls the table function ${tableFunction}, which is not allowed; allowed: ${TABLE_FUNCTIONS.join(', ')}`;
  const forbidden = [...functions].find(name => FORBIDDEN_FUNCTIONS.includes(name));
  return forbidden === undefined
    ? undefined
    : `calls the function ${forbidden}, which is not allowed: DuckDB marks it as a function with side effects`;
}

/**
 * Returns the first table that is not a log table, as a sentence, or undefined. A common table expression must not have the name of a
 * table or a file: outside of its scope, the name would mean that table or file.
 */
export function findForbiddenTable({ tables, commonTableExpressions }: SqlReferences): string | undefined {
  const isTaken = (name: string) => TABLES.includes(name) || SYSTEM_VIEW.test(name) || !/^\w+$/.test(name);
  const taken = [...commonTableExpressions].find(isTaken);
  if (taken !== undefined)
    return `defines a common table expression ${taken}, which is not allowed: a table or a file has this name; rename it`;
  const forbidden = [...tables].find(name => !TABLES.includes(name) && !commonTableExpressions.has(name));
  return forbidden === undefined
    ? undefined
    : `reads the table ${forbidden}, which is not allowed; allowed: ${TABLES.join(', ')}`;
}

type TreeNode = Readonly<Record<string, unknown>>;

function collect(value: unknown, found: SqlReferences): void {
  if (typeof value !== 'object' || value === null) return;
  const node = value as TreeNode;
  const nameOf = (key: string, of: TreeNode = node) => String(of[key] ?? '').toLowerCase();
  if (node['type'] === 'TABLE_FUNCTION')
    found.tableFunctions.add(nameOf('function_name', node['function'] as TreeNode));
  if (node['type'] === 'BASE_TABLE')
    found.tables.add(
      ['catalog_name', 'schema_name', 'table_name']
        .map(key => nameOf(key))
        .filter(Boolean)
        .join('.'),
    );
  if (node['type'] === 'SHOW_REF') found.hasShow = true;
  if (node['class'] === 'FUNCTION' || node['class'] === 'WINDOW')
    found.functions.add(nameOf('function_name'));
  const { map = [] } = (node['cte_map'] ?? {}) as { readonly map?: readonly TreeNode[] };
  for (const expression of map) found.commonTableExpressions.add(nameOf('key', expression));
  for (const child of Object.values(node)) collect(child, found);
}
