// Checks the parsed SQL of an endpoint: tables and table functions must be on an allow-list, and other functions must have no
// side effects. A SELECT can call functions that change the engine or read files, and neither a read-only transaction nor
// DuckDB's lock of the configuration prevents all of them. A pattern of LIKE must be simple: LIKE can take hours for one text.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import { escapePattern } from '../condition-sql.ts';
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

/** The functions by which the parser replaces operators. */
const LIKE_OPERATORS = new Map([
  ['~~', 'like'],
  ['!~~', 'not like'],
  ['~~*', 'ilike'],
  ['!~~*', 'not ilike'],
  ['~~~', 'glob'],
  ['like_escape', 'like'],
  ['not_like_escape', 'not like'],
  ['ilike_escape', 'ilike'],
  ['not_ilike_escape', 'not ilike'],
]);
/** SIMILAR TO, and the operators ~ and !~. */
const SIMILAR_FUNCTION = 'regexp_full_match';
/** Texts have up to 1 MiB, and the time grows with the length to the power of the number of wildcards. */
const MAX_LIKE_WILDCARDS = 2;

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
  /** Functions of DuckDB itself, even if a macro has their name (regexp-macro.ts). */
  readonly systemFunctions: Set<string>;
  /** Patterns of LIKE, ILIKE, GLOB and SIMILAR TO that are not allowed, each in words. */
  readonly likePatterns: Set<string>;
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
    systemFunctions: new Set(),
    likePatterns: new Set(),
    hasShow: false,
  };
  collect(tree, references, Buffer.from(sql));
  return references;
}

/** Returns the first function that is not allowed, as a sentence, or undefined. */
export function findForbiddenFunction({
  tableFunctions,
  functions,
  systemFunctions: [systemFunction],
}: SqlReferences): string | undefined {
  if (systemFunction !== undefined)
    return `calls the function ${systemFunction}, which is not allowed: write its name without a catalog and a schema`;
  const tableFunction = [...tableFunctions].find(name => !TABLE_FUNCTIONS.includes(name));
  if (tableFunction !== undefined)
    return `calls the table function ${tableFunction}, which is not allowed; allowed: ${TABLE_FUNCTIONS.join(', ')}`;
  const forbidden = [...functions].find(name => FORBIDDEN_FUNCTIONS.includes(name));
  return forbidden === undefined
    ? undefined
    : `calls the function ${forbidden}, which is not allowed: DuckDB marks it as a function with side effects`;
}

/** Returns the first pattern of LIKE that is not allowed, as a sentence, or undefined. */
export function findForbiddenLike({ likePatterns: [first] }: SqlReferences): string | undefined {
  return first === undefined
    ? undefined
    : `uses ${first}, which is not allowed: DuckDB can take hours for one text; use contains(), starts_with(), ends_with() or regexp_matches()`;
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

/** `operator` is the SQL at the position of the closest node around this one that has a position. */
function collect(value: unknown, found: SqlReferences, sql: Buffer, operator = ''): void {
  if (typeof value !== 'object' || value === null) return;
  const node = value as TreeNode;
  const position = Number(node['query_location'] ?? sql.length);
  const ownOperator = position < sql.length ? sql.toString('latin1', position, position + 8) : operator;
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
  if (node['class'] === 'FUNCTION' || node['class'] === 'WINDOW') {
    const name = nameOf('function_name');
    found.functions.add(name);
    const path = [nameOf('catalog'), nameOf('schema'), name].filter(Boolean);
    if (path.length > 1 && path[0] === 'system') found.systemFunctions.add(path.join('.'));
    const isSimilar = name === SIMILAR_FUNCTION && /^(not|similar)\b/i.test(ownOperator);
    const likeOperator = isSimilar ? 'similar to' : LIKE_OPERATORS.get(name);
    const likePattern =
      likeOperator && findLikePattern(name, likeOperator, node['children'] as readonly TreeNode[]);
    if (likePattern !== undefined) found.likePatterns.add(likePattern);
  }
  const { map = [] } = (node['cte_map'] ?? {}) as { readonly map?: readonly TreeNode[] };
  for (const expression of map) found.commonTableExpressions.add(nameOf('key', expression));
  for (const child of Object.values(node)) collect(child, found, sql, ownOperator);
}

/**
 * Describes the pattern of LIKE, ILIKE, GLOB or SIMILAR TO if it is not allowed. DuckDB searches for the parts of a plain LIKE one after
 * the other. ILIKE, GLOB and ESCAPE try every position of a wildcard that is not at the end. SIMILAR TO has the same rule, although it
 * takes linear time in this version.
 */
function findLikePattern(
  name: string,
  operator: string,
  [, pattern, escapeNode]: readonly TreeNode[],
): string | undefined {
  const [text, escapeCharacter = ''] = [constantOf(pattern), constantOf(escapeNode)];
  if (text === undefined || (escapeNode !== undefined && escapeCharacter === ''))
    return `${operator} with a pattern that is not a text in quotes`;
  const unescaped =
    escapeCharacter === '' ? text : text.replace(new RegExp(`${escapePattern(escapeCharacter)}.`, 'gsu'), '');
  const wildcards = unescaped.match(operator === 'glob' ? /[*?[]/g : /[%_]/g) ?? [];
  if (wildcards.length > MAX_LIKE_WILDCARDS)
    return `${operator} with more than ${MAX_LIKE_WILDCARDS} wildcards`;
  const isLinear = /^!?~~$/.test(name) || name === SIMILAR_FUNCTION;
  return !isLinear && /^[^%*]*([%*])[^%*]*\1./s.test(unescaped)
    ? `${operator} with two wildcards of which the second is not at the end`
    : undefined;
}

/** The text of a literal. */
function constantOf(node: TreeNode = {}): string | undefined {
  const { value } = (node['value'] ?? {}) as TreeNode;
  return node['class'] === 'CONSTANT' && typeof value === 'string' ? value : undefined;
}
