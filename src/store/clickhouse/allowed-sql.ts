// Checks the functions in the parsed SQL of an endpoint: table functions must be on an allow-list, and the function `file` is
// refused. With readonly = 2, a SELECT can still call functions that read files, other servers and the network, if the ClickHouse
// user may use them.
import type { Reader, ReaderParameters } from './reader.ts';

/** Allowed: they only return rows from their arguments. All others are refused. */
const TABLE_FUNCTIONS = ['generateSeries', 'generate_series', 'numbers', 'values', 'view', 'zeros'];

/** The right side of IN may be a table function. A list of values there is also a function in the AST: one of these. */
const LIST_FUNCTIONS = ['tuple', 'array', 'CAST', '_CAST'];

/** A line of EXPLAIN AST, such as "   Function url (alias t) (children 1)". Its depth is the number of leading spaces. */
interface AstNode {
  readonly depth: number;
  readonly kind: string;
  readonly name: string;
}

/** Returns the first function that is not allowed, as a sentence, or undefined. Throws as `Reader.query` does. */
export async function findForbiddenFunction(
  reader: Reader,
  sql: string,
  parameters: ReaderParameters,
): Promise<string | undefined> {
  const { rows } = await reader.query({
    sql: `explain ast ${sql}`,
    parameters,
    // The ClickHouse client library appends a FORMAT clause, which becomes part of the explained query and does not set the
    // format of this result. This setting does.
    settings: { default_format: 'JSONCompactEachRow' },
    purpose: 'check',
  });
  const nodes = rows.map(([line]) => parseLine(String(line)));
  const forbidden = listTableFunctions(nodes).find(name => !TABLE_FUNCTIONS.includes(name));
  if (forbidden !== undefined)
    return `calls the table function ${forbidden}, which is not allowed; allowed: ${TABLE_FUNCTIONS.join(', ')}`;
  const readsFile = nodes.some(({ kind, name }) => kind === 'Function' && name === 'file');
  return readsFile ? 'calls the function file, which is not allowed, because it reads files' : undefined;
}

function parseLine(line: string): AstNode {
  const [, spaces = '', kind = '', name = ''] = /^( *)(\w*) ?(\S*)/.exec(line) ?? [];
  return { depth: spaces.length, kind, name };
}

/** Functions in the place of a table, and on the right side of IN. */
function listTableFunctions(nodes: readonly AstNode[]): string[] {
  const found: string[] = [];
  for (const [index, { depth, kind, name }] of nodes.entries()) {
    if (kind === 'TableExpression') {
      const table = nodes[index + 1];
      if (table?.kind === 'Function') found.push(table.name);
    }
    if (kind === 'Function' && /^(global)?(not)?(null)?in(IgnoreSet)?$/i.test(name)) {
      const [, right] = argumentsAt(nodes, index, depth + 2);
      if (right?.kind === 'Function' && !LIST_FUNCTIONS.includes(right.name)) found.push(right.name);
    }
  }
  return found;
}

/**
 * The arguments of the function at `index`. They are at `depth`, two levels below the function: its child is a list, and the
 * arguments are the children of that list.
 */
function argumentsAt(nodes: readonly AstNode[], index: number, depth: number): AstNode[] {
  const found: AstNode[] = [];
  for (const node of nodes.slice(index + 1)) {
    if (node.depth < depth - 1) break;
    if (node.depth === depth) found.push(node);
  }
  return found;
}
