// Reading the parse tree of a query: its nodes, their positions, and the literals that lex.ts replaced.
import type { DendroError } from '../domain/errors.ts';
import type { LexedQuery, Literal } from './lex.ts';
import type { TreeNode } from './parse-sql.ts';
import { refuse } from './syntax-error.ts';

/** What a key of the tree means, and the words that show its position in the text. */
const CONSTRUCTS = new Map<string, readonly [name: string, words: RegExp]>([
  ['cte_map', ['with', /^with$/i]],
  ['sample', ['a sample', /^(tablesample|using|sample)$/i]],
  ['filter', ['filter', /^filter$/i]],
  ['order_bys', ['order by in a function', /^order$/i]],
  ['offset', ['offset', /^offset$/i]],
  ['null_order', ['the order of nulls', /^nulls$/i]],
  ['aggregate_handling', ['group by all', /^all$/i]],
]);

/** Values of keys that have no effect. */
const DEFAULTS: readonly unknown[] = [
  null,
  false,
  '',
  'STANDARD_HANDLING',
  'WITHOUT_ORDINALITY',
  'ORDER_DEFAULT',
];

export class TreeReader {
  readonly #lexed: LexedQuery;

  constructor(lexed: LexedQuery) {
    this.#lexed = lexed;
  }

  /** Refuses a node with other keys than these, unless they have no effect. */
  only(node: TreeNode, keys: string): void {
    const known = ['class', 'type', 'query_location', 'alias', ...keys.split(' ')];
    const unknown = Object.keys(node).find(key => !known.includes(key) && isGiven(node[key]));
    if (unknown === undefined) return;
    const [name, words] = CONSTRUCTS.get(unknown) ?? [nameOfKey(unknown), /^$/];
    throw refuse(`${name} is not supported`, this.#lexed.findWord(words) ?? this.at(node) ?? 1);
  }

  refuse(problem: string, node: unknown): DendroError {
    return refuse(problem, this.at(node) ?? 1);
  }

  /** The position of a node, or of the first part of it that has one. */
  at(node: unknown): number | undefined {
    if (typeof node !== 'object' || node === null) return undefined;
    const own = this.#lexed.positionAt(Number((node as TreeNode)['query_location'] ?? -1));
    return (
      own ??
      Object.values(node)
        .map(part => this.at(part))
        .find(at => at !== undefined)
    );
  }

  /** For a construct whose nodes have no position: that of a word in the query. */
  refuseWord(problem: string, words: RegExp, index = 0): DendroError {
    return refuse(problem, this.#lexed.findWord(words, index));
  }

  /** Undefined: null, or no literal. */
  literalOf(node: TreeNode): Literal | undefined {
    const { is_null, value } = toNode(node['value']);
    return node['class'] !== 'CONSTANT' || is_null === true ? undefined : this.#lexed.literals[Number(value)];
  }

  wholeNumberOf(node: TreeNode): number | undefined {
    const literal = this.literalOf(node);
    const isWhole = literal !== undefined && 'number' in literal && /^\d{1,15}$/.test(literal.number);
    return isWhole ? Number(literal.number) : undefined;
  }

  textOf(node: TreeNode, name: string): string {
    const literal = this.literalOf(node);
    if (literal === undefined || !('text' in literal))
      throw this.refuse(`${name} with anything but a text in quotes is not supported`, node);
    return literal.text;
  }
}

/** Whether a part of the tree has an effect. */
export function isGiven(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined && !DEFAULTS.includes(value);
  return Object.entries(value).some(([key, part]) => key !== 'type' && isGiven(part));
}

export function nameOfKey(key: string): string {
  return key.toLowerCase().replaceAll('_', ' ');
}

/** In a message. */
export function short(name: string): string {
  return name.slice(0, 64);
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function toNode(value: unknown): TreeNode {
  return typeof value === 'object' && value !== null ? (value as TreeNode) : {};
}

export function toNodes(value: unknown): readonly TreeNode[] {
  return Array.isArray(value) ? value : [];
}

export function toNames(node: TreeNode): readonly string[] {
  return toNodes(node['column_names']).map(String);
}
