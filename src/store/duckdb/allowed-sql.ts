// Checks the parsed SQL of an endpoint against an allow-list: a SELECT can call functions that change the engine or read files, and
// neither a read-only transaction nor DuckDB's lock of the configuration prevents all of them.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';

/** They only return rows from their arguments. All others are refused: some change settings, others read files or metadata. */
const TABLE_FUNCTIONS = ['generate_series', 'json_each', 'json_tree', 'range', 'unnest'];

/** DuckDB marks functions that change something or return another value at each call. These change nothing. */
const HARMLESS_FUNCTIONS = ['error', 'gen_random_uuid', 'random', 'sleep_ms', 'uuid', 'uuidv4', 'uuidv7'];

const TABLES = LOG_KINDS.map(kind => `${kind}_logs`);

/** What the SQL of an endpoint uses, from its parse tree. Names are in lower case. */
export interface SqlReferences {
  readonly tableFunctions: readonly string[];
  readonly functions: readonly string[];
  /** Without the names of common table expressions. */
  readonly tables: readonly string[];
  /** Whether it contains DESCRIBE, SHOW or SUMMARIZE. */
  readonly hasShow: boolean;
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
  const collector = new ReferenceCollector();
  collector.visit(tree);
  return collector.references();
}

/** Returns the first function that is not allowed, as a sentence, or undefined. */
export async function findForbiddenFunction(
  connection: DuckDBConnection,
  { tableFunctions, functions }: SqlReferences,
): Promise<string | undefined> {
  const tableFunction = tableFunctions.find(name => !TABLE_FUNCTIONS.includes(name));
  if (tableFunction !== undefined)
    return `calls the table function ${tableFunction}, which is not allowed; allowed: ${TABLE_FUNCTIONS.join(', ')}`;
  const reader = await connection.runAndReadAll(
    'select distinct function_name from duckdb_functions() where has_side_effects',
  );
  const withEffects = new Set(reader.getRows().map(([name]) => String(name)));
  const forbidden = functions.find(name => withEffects.has(name) && !HARMLESS_FUNCTIONS.includes(name));
  return forbidden === undefined
    ? undefined
    : `calls the function ${forbidden}, which is not allowed: DuckDB marks it as a function with side effects`;
}

/** Returns the first table that is not a log table, as a sentence, or undefined. */
export function findForbiddenTable({ tables }: SqlReferences): string | undefined {
  const forbidden = tables.find(name => !TABLES.includes(name));
  return forbidden === undefined
    ? undefined
    : `reads the table ${forbidden}, which is not allowed; allowed: ${TABLES.join(', ')}`;
}

type TreeNode = Readonly<Record<string, unknown>>;

class ReferenceCollector {
  readonly #tableFunctions = new Set<string>();
  readonly #functions = new Set<string>();
  readonly #tables = new Set<string>();
  readonly #commonTableExpressions = new Set<string>();
  #hasShow = false;

  visit(value: unknown): void {
    if (Array.isArray(value)) for (const item of value) this.visit(item);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const node = value as TreeNode;
    this.#collect(node);
    // The function node of a table function is no call of a scalar function, but its arguments can contain such calls.
    const children = node['type'] === 'TABLE_FUNCTION' ? { ...node, ...argumentsOf(node) } : node;
    for (const child of Object.values(children)) this.visit(child);
  }

  references(): SqlReferences {
    return {
      tableFunctions: [...this.#tableFunctions],
      functions: [...this.#functions],
      tables: [...this.#tables].filter(name => !this.#commonTableExpressions.has(name)),
      hasShow: this.#hasShow,
    };
  }

  #collect(node: TreeNode): void {
    switch (node['type']) {
      case 'TABLE_FUNCTION':
        this.#tableFunctions.add(functionNameOf(node['function']));
        break;
      case 'BASE_TABLE':
        this.#tables.add(qualifiedName(node));
        break;
      case 'SHOW_REF':
        this.#hasShow = true;
        break;
    }
    if (node['class'] === 'FUNCTION' || node['class'] === 'WINDOW') this.#functions.add(functionNameOf(node));
    const { map = [] } = (node['cte_map'] ?? {}) as { readonly map?: readonly { readonly key: string }[] };
    for (const { key } of map) this.#commonTableExpressions.add(key.toLowerCase());
  }
}

function functionNameOf(value: unknown): string {
  return String((value as TreeNode | undefined)?.['function_name'] ?? '').toLowerCase();
}

/** Arguments of a table function: its function node without its name and class. */
function argumentsOf(node: TreeNode): TreeNode {
  const { function_name, class: _, ...rest } = (node['function'] ?? {}) as TreeNode;
  return { function: rest };
}

function qualifiedName({ catalog_name, schema_name, table_name }: TreeNode): string {
  return [catalog_name, schema_name, table_name]
    .filter(part => part !== '')
    .map(part => String(part).toLowerCase())
    .join('.');
}
