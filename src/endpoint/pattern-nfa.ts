// The nondeterministic automaton (NFA) of a regular expression, built by Thompson's construction.
import type { Ranges } from './pattern-characters.ts';
import type { Assertion, PatternNode } from './pattern-syntax.ts';

/** The class of the character before or after a position in the text, which decides assertions. `EDGE`: there is no character. */
export const EDGE = 0;
export const LINE_BREAK_CHARACTER = 1;
export const WORD_CHARACTER = 2;
export const OTHER_CHARACTER = 3;
export type Neighbour =
  | typeof EDGE
  | typeof LINE_BREAK_CHARACTER
  | typeof WORD_CHARACTER
  | typeof OTHER_CHARACTER;

/** Only a `set` consumes a character. Its `weight` is about the number of states that RE2 needs for it. */
type NfaNode =
  | { readonly type: 'set'; readonly ranges: Ranges; readonly weight: number; readonly next: number }
  | { readonly type: 'assertion'; readonly assertion: Assertion; readonly next: number }
  | { readonly type: 'split'; next: readonly number[] }
  | { readonly type: 'match' };

/** The id of the node in which every match ends. */
export const MATCH = 0;

/** The limit of compiled tree nodes. Each copy of a repeated node counts. */
const MAX_TREE_NODES = 5_000;

/** The weights of sets. RE2 matches bytes: characters beyond ASCII need several states, a Unicode class such as \pL many. */
const ASCII_WEIGHT = 1;
const MULTI_BYTE_WEIGHT = 4;
const UNICODE_CLASS_WEIGHT = 16;
/**
 * A Unicode class also makes RE2's program larger, at the expense of the memory for its DFA: with DuckDB, 12 of them are fast, and
 * 16 take 10 times as long.
 */
const UNICODE_CLASS_COST = 800;

/** The automaton, or the computation of its cost, exceeds a limit. */
export class TooExpensive extends Error {}

/** Counted repetitions are expanded: a{3} becomes aaa. */
export class Nfa {
  readonly nodes: NfaNode[] = [{ type: 'match' }];
  readonly start: number;
  /** The character classes that the expression has to distinguish, besides `EDGE`. */
  readonly neighbours: readonly Neighbour[];
  /** The part of the cost that does not depend on the DFA: UNICODE_CLASS_COST for each node that contains a Unicode class. */
  fixedCost = 0;
  readonly #maxCost: number;
  #compiled = 0;

  constructor(tree: PatternNode, maxCost: number) {
    this.#maxCost = maxCost;
    this.start = this.#compile(tree, MATCH);
    const dependsOnNeighbours = this.nodes.some(
      node => node.type === 'assertion' && node.assertion !== 'text_start' && node.assertion !== 'text_end',
    );
    this.neighbours = dependsOnNeighbours
      ? [LINE_BREAK_CHARACTER, WORD_CHARACTER, OTHER_CHARACTER]
      : [OTHER_CHARACTER];
  }

  /**
   * The ids of the nodes that are reachable from a node without consuming a character: sets, the match, and assertions that
   * cannot be decided because `after` is unknown.
   */
  closure(from: number, before: Neighbour, after?: Neighbour): number[] {
    const reached = new Set([from]);
    const found: number[] = [];
    for (const id of reached) {
      const node = this.nodes[id];
      if (node?.type === 'split') for (const next of node.next) reached.add(next);
      else if (node?.type === 'assertion') {
        const isTrue = holds(node.assertion, before, after);
        if (isTrue === undefined) found.push(id);
        else if (isTrue) reached.add(node.next);
      } else found.push(id);
    }
    return found;
  }

  weightOf(id: number): number {
    const node = this.nodes[id];
    if (node?.type === 'set') return node.weight;
    return node?.type === 'assertion' ? ASCII_WEIGHT : 0;
  }

  /** Returns the start of the part that matches `tree` and continues at `next`. */
  #compile(tree: PatternNode, next: number): number {
    if (++this.#compiled > MAX_TREE_NODES) throw new TooExpensive();
    switch (tree.type) {
      case 'set':
        if (tree.isUnicodeClass) this.fixedCost += UNICODE_CLASS_COST;
        if (this.fixedCost > this.#maxCost) throw new TooExpensive();
        return this.#add({ type: 'set', ranges: tree.ranges, weight: setWeight(tree), next });
      case 'assertion':
        return this.#add({ type: 'assertion', assertion: tree.assertion, next });
      case 'concat':
        return tree.nodes.reduceRight((after, node) => this.#compile(node, after), next);
      case 'alternate':
        return this.#add({ type: 'split', next: tree.nodes.map(node => this.#compile(node, next)) });
      case 'repeat':
        return this.#compileRepeat(tree, next);
    }
  }

  #compileRepeat({ node, min, max }: PatternNode & { type: 'repeat' }, next: number): number {
    let start = next;
    let requiredCopies = min;
    if (max === Number.POSITIVE_INFINITY) {
      const loop: NfaNode = { type: 'split', next: [] };
      start = this.#add(loop);
      const body = this.#compile(node, start);
      loop.next = [body, next];
      if (requiredCopies > 0) start = body; // a+ is one a with a way back, not aa*
      requiredCopies--;
    } else {
      for (let optional = min; optional < max; optional++)
        start = this.#add({ type: 'split', next: [this.#compile(node, start), next] });
    }
    for (; requiredCopies > 0; requiredCopies--) start = this.#compile(node, start);
    return start;
  }

  #add(node: NfaNode): number {
    return this.nodes.push(node) - 1;
  }
}

function setWeight({ ranges, isUnicodeClass }: PatternNode & { type: 'set' }): number {
  if (isUnicodeClass) return UNICODE_CLASS_WEIGHT;
  return ranges.some(codePoint => codePoint > 0x7f) ? MULTI_BYTE_WEIGHT : ASCII_WEIGHT;
}

/** Whether an assertion is true. Undefined: it depends on the next character, which is unknown. */
function holds(assertion: Assertion, before: Neighbour, after: Neighbour | undefined): boolean | undefined {
  if (assertion === 'text_start') return before === EDGE;
  if (assertion === 'line_start') return before === EDGE || before === LINE_BREAK_CHARACTER;
  if (after === undefined) return undefined;
  if (assertion === 'text_end') return after === EDGE;
  if (assertion === 'line_end') return after === EDGE || after === LINE_BREAK_CHARACTER;
  const isBoundary = (before === WORD_CHARACTER) !== (after === WORD_CHARACTER);
  return isBoundary === (assertion === 'word_boundary');
}
