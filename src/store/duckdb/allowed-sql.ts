// Checks the parsed SQL of an endpoint: tables and table functions must be on an allow-list, and other functions must have no
// side effects. A SELECT can call functions that change the engine or read files, and neither a read-only transaction nor
// DuckDB's lock of the configuration prevents all of them.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';

/** Allowed: they only return rows from their arguments. All others are refused: some change settings, read files or metadata. */
const TABLE_FUNCTIONS = ['generate_series', 'json_each', 'json_tree', 'range', 'unnest'];

/** DuckDB marks these too as functions with side effects, most because each call returns another value. They change nothing. */
const HARMLESS_FUNCTIONS = ['error', 'gen_random_uuid', 'random', 'sleep_ms', 'uuid', 'uuidv4', 'uuidv7'];

/** The allowed tables. */
const TABLES = LOG_KINDS.map(kind => `${kind}_logs`);

/** What the SQL of an endpoint uses, from its parse tree. Names are in lower case. */
export interface SqlReferences {
  readonly tableFunctions: readonly string[];
  readonly functions: readonly string[];
  /** Without the names of common table expressions. */
  readonly tables: readonly string[];
  /** The names of its common table expressions. */
  readonly commonTableExpressions: readonly string[];
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

export function isLogTable(name: string): boolean {
  return TABLES.includes(name);
}

type TreeNode = Readonly<Record<string, unknown>>;
/** The names of the common table expressions that a part of the SQL can read, in lower case. */
type Scope = ReadonlySet<string>;

class ReferenceCollector {
  readonly #tableFunctions = new Set<string>();
  readonly #functions = new Set<string>();
  readonly #tables = new Set<string>();
  readonly #commonTableExpressions = new Set<string>();
  #hasShow = false;

  visit(value: unknown, outer: Scope = new Set()): void {
    if (Array.isArray(value)) for (const item of value) this.visit(item, outer);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const node = value as TreeNode;
    this.#collect(node, outer);
    const { cte_map, ...children } = node;
    const scope = this.#visitCommonTableExpressions(cte_map, outer);
    for (const [name, child] of Object.entries(children)) {
      // The function node of a table function is no call of a scalar function, but its arguments can contain such calls.
      if (node['type'] === 'TABLE_FUNCTION' && name === 'function') this.visit(argumentsOf(node), scope);
      // Only the second SELECT of a recursive expression can read the expression itself.
      else if (node['type'] === 'RECURSIVE_CTE_NODE' && name === 'right')
        this.visit(child, withName(scope, node['cte_name']));
      else this.visit(child, scope);
    }
  }

  /** An expression can read those before it. Returns the scope of the SELECT that the expressions belong to. */
  #visitCommonTableExpressions(cteMap: unknown, outer: Scope): Scope {
    const { map = [] } = (cteMap ?? {}) as { readonly map?: readonly TreeNode[] };
    let scope = outer;
    for (const { key, value } of map) {
      this.visit(value, scope);
      scope = withName(scope, key);
      this.#commonTableExpressions.add(String(key).toLowerCase());
    }
    return scope;
  }

  references(): SqlReferences {
    return {
      tableFunctions: [...this.#tableFunctions],
      functions: [...this.#functions],
      tables: [...this.#tables],
      commonTableExpressions: [...this.#commonTableExpressions],
      hasShow: this.#hasShow,
    };
  }

  #collect(node: TreeNode, scope: Scope): void {
    switch (node['type']) {
      case 'TABLE_FUNCTION':
        this.#tableFunctions.add(functionNameOf(node['function']));
        break;
      case 'BASE_TABLE':
        if (!isCommonTableExpression(node, scope)) this.#tables.add(qualifiedName(node));
        break;
      case 'SHOW_REF':
        this.#hasShow = true;
        break;
    }
    if (node['class'] === 'FUNCTION' || node['class'] === 'WINDOW') this.#functions.add(functionNameOf(node));
  }
}

function withName(scope: Scope, name: unknown): Scope {
  return new Set([...scope, String(name).toLowerCase()]);
}

/** A name with a schema is always that of a table. */
function isCommonTableExpression({ catalog_name, schema_name, table_name }: TreeNode, scope: Scope): boolean {
  return catalog_name === '' && schema_name === '' && scope.has(String(table_name).toLowerCase());
}

function functionNameOf(value: unknown): string {
  return String((value as TreeNode | undefined)?.['function_name'] ?? '').toLowerCase();
}

/** Arguments of a table function: its function node without its name and class. */
function argumentsOf(node: TreeNode): TreeNode {
  const { function_name, class: _, ...rest } = (node['function'] ?? {}) as TreeNode;
  return rest;
}

function qualifiedName({ catalog_name, schema_name, table_name }: TreeNode): string {
  return [catalog_name, schema_name, table_name]
    .filter(part => part !== '')
    .map(part => String(part).toLowerCase())
    .join('.');
}
