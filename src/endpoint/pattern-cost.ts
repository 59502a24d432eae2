// The cost of a regular expression: the size of its deterministic automaton (DFA). RE2, which both stores use, matches with a
// DFA in constant time per byte as long as the DFA fits into its memory. Otherwise it tracks every position of the expression
// that a match can be at, which can be a thousand times slower, and a query cannot be cancelled within a block of rows.
import { type PatternNode, parsePattern, type Ranges } from './pattern-syntax.ts';

/**
 * The highest allowed cost. Measured with DuckDB on blocks of 2,048 URLs of 8 KiB: expressions just below this limit take 0.2 s
 * for a block, those with 20 times the cost take 10 s to minutes.
 */
export const MAX_PATTERN_COST = 10_000;

/** Bounds the time to compute the cost to tens of milliseconds. An expression that needs more counts as too expensive. */
const MAX_STEPS = 500_000;
const MAX_NODES = 5_000;

/** RE2 matches bytes: a set of characters beyond ASCII needs several states, a Unicode class such as \pL many. */
const ASCII_WEIGHT = 1;
const MULTI_BYTE_WEIGHT = 4;
const UNICODE_CLASS_WEIGHT = 16;

/**
 * Returns the cost: for each state of the DFA, 1 plus the weights of its positions. Returns Infinity above the limit, and
 * undefined for an expression with unknown syntax.
 */
export function computePatternCost(pattern: string): number | undefined {
  const tree = parsePattern(pattern);
  if (tree === undefined) return undefined;
  if (isPlainText(tree)) return tree.nodes.length; // both stores search for it without an automaton
  try {
    return new Dfa(new Nfa(tree)).computeCost();
  } catch (error) {
    if (error instanceof TooExpensive) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

class TooExpensive extends Error {}

function isPlainText(tree: PatternNode): tree is PatternNode & { type: 'concat' } {
  const isCharacter = (node: PatternNode) =>
    node.type === 'set' && node.ranges.length === 2 && node.ranges[0] === node.ranges[1];
  return tree.type === 'concat' && tree.nodes.every(isCharacter);
}

/** A set consumes one character. `begin` can be passed only at the start of the text. */
type NfaNode =
  | { readonly type: 'set'; readonly ranges: Ranges; readonly weight: number; readonly next: number }
  | { readonly type: 'begin'; readonly next: number }
  | { readonly type: 'split'; next: readonly number[] }
  | { readonly type: 'match' };

/** The id of the node in which every match ends. */
const MATCH = 0;

/** A nondeterministic automaton, built by Thompson's construction. Counted repetitions are expanded: a{3} becomes aaa. */
class Nfa {
  readonly nodes: NfaNode[] = [{ type: 'match' }];
  readonly start: number;
  #compiled = 0;

  constructor(tree: PatternNode) {
    this.start = this.#compile(tree, MATCH);
  }

  /** The sets and the match that are reachable from a node without consuming a character. */
  closure(from: number, isAtBegin = false): number[] {
    const reached = new Set([from]);
    const found: number[] = [];
    for (const id of reached) {
      const node = this.nodes[id];
      if (node?.type === 'split') for (const next of node.next) reached.add(next);
      else if (node?.type !== 'begin') found.push(id);
      else if (isAtBegin) reached.add(node.next);
    }
    return found;
  }

  /** Returns the start of the part that matches `tree` and continues at `next`. */
  #compile(tree: PatternNode, next: number): number {
    if (++this.#compiled > MAX_NODES) throw new TooExpensive();
    switch (tree.type) {
      case 'set':
        return this.#add({ type: 'set', ranges: tree.ranges, weight: weightOf(tree), next });
      case 'begin':
        return this.#add({ type: 'begin', next });
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
    if (max === Number.POSITIVE_INFINITY) {
      const loop: NfaNode = { type: 'split', next: [] };
      start = this.#add(loop);
      loop.next = [this.#compile(node, start), next];
    } else {
      for (let optional = min; optional < max; optional++)
        start = this.#add({ type: 'split', next: [this.#compile(node, start), next] });
    }
    for (let required = 0; required < min; required++) start = this.#compile(node, start);
    return start;
  }

  #add(node: NfaNode): number {
    return this.nodes.push(node) - 1;
  }
}

function weightOf({ ranges, isUnicodeClass }: PatternNode & { type: 'set' }): number {
  if (isUnicodeClass) return UNICODE_CLASS_WEIGHT;
  return ranges.some(codePoint => codePoint > 0x7f) ? MULTI_BYTE_WEIGHT : ASCII_WEIGHT;
}

/** Separates the groups of a state. Higher than every id of a node. */
const SEPARATOR = 0xffff;

/**
 * The subset construction for an unanchored search, as RE2 does it. A position is the id of an NFA node of type `set` or `match`. A
 * DFA state is an ordered list of groups of positions: one group for each start of a match, the earliest start first. A position is
 * kept only in its first group. Every state also contains the start positions, because a match can begin at the next character;
 * they are not stored. A state with a complete match is final, because the engine stops there.
 */
class Dfa {
  readonly #nfa: Nfa;
  /** By position: the symbols that it accepts, and the positions that follow. */
  readonly #symbols: readonly (readonly number[])[];
  readonly #targets: (readonly number[] | undefined)[] = [];
  /** By symbol: the positions of a match that begins with it. */
  readonly #afterFirst: (readonly number[] | undefined)[] = [];
  readonly #states = new Set<string>();
  readonly #queue: (readonly number[])[] = [];
  #cost = 0;
  #steps = 0;

  constructor(nfa: Nfa) {
    this.#nfa = nfa;
    this.#symbols = assignSymbols(nfa);
  }

  computeCost(): number {
    const { start } = this.#nfa;
    const first = this.#nfa.closure(start);
    if (first.includes(MATCH)) return 0; // matches every text at once
    // The successors of the state in which no match has begun.
    for (const [symbol, positions] of this.#step(first)) this.#afterFirst[symbol] = positions;
    this.#enter(this.#nfa.closure(start, true));
    for (const positions of this.#afterFirst) if (positions !== undefined) this.#enter(positions);
    for (const state of this.#queue)
      for (const [symbol, positions] of this.#step(state)) {
        positions.push(SEPARATOR, ...(this.#afterFirst[symbol] ?? []));
        this.#enter(positions);
      }
    return this.#cost;
  }

  /** The groups that follow a state, by symbol. They may contain duplicates. */
  #step(state: readonly number[]): Map<number, number[]> {
    const successors = new Map<number, number[]>();
    for (const id of state) {
      if (id === SEPARATOR) {
        for (const positions of successors.values()) positions.push(SEPARATOR);
        this.#spend(successors.size);
        continue;
      }
      const targets = this.#targetsOf(id);
      for (const symbol of this.#symbols[id] ?? []) {
        const positions = successors.get(symbol);
        if (positions === undefined) successors.set(symbol, [...targets]);
        else for (const target of targets) positions.push(target);
        this.#spend(1 + targets.length);
      }
    }
    return successors;
  }

  #targetsOf(id: number): readonly number[] {
    const known = this.#targets[id];
    if (known !== undefined) return known;
    const node = this.#nfa.nodes[id];
    const targets = node?.type === 'set' ? this.#nfa.closure(node.next) : [];
    this.#spend(targets.length);
    this.#targets[id] = targets;
    return targets;
  }

  #enter(positions: readonly number[]): void {
    this.#spend(positions.length);
    const state = normalize(positions);
    const key = String.fromCharCode(...state);
    if (this.#states.has(key)) return;
    this.#states.add(key);
    this.#cost++;
    for (const id of state) {
      const node = this.#nfa.nodes[id];
      if (node?.type === 'set') this.#cost += node.weight;
    }
    if (this.#cost > MAX_PATTERN_COST) throw new TooExpensive();
    if (!state.includes(MATCH)) this.#queue.push(state);
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new TooExpensive();
  }
}

/** Removes duplicates and empty groups, and sorts each group. */
function normalize(positions: readonly number[]): number[] {
  const seen = new Set<number>();
  const state: number[] = [];
  let group: number[] = [];
  const endGroup = () => {
    if (group.length === 0) return;
    if (state.length > 0) state.push(SEPARATOR);
    if (group.length > 1) group.sort((a, b) => a - b);
    for (const id of group) state.push(id);
    group = [];
  };
  for (const id of positions) {
    if (id === SEPARATOR) endGroup();
    else if (!seen.has(id)) {
      seen.add(id);
      group.push(id);
    }
  }
  endGroup();
  return state;
}

/** Characters that no set of the expression tells apart are one symbol. Returns the symbols of each position. */
function assignSymbols({ nodes }: Nfa): number[][] {
  const sets = new Map<Ranges, number[]>(); // copies of a counted repetition share their ranges
  for (const node of nodes) if (node.type === 'set') sets.set(node.ranges, []);
  const bounds = new Set<number>();
  for (const ranges of sets.keys())
    for (let index = 0; index < ranges.length; index += 2)
      bounds.add(ranges[index] ?? 0).add((ranges[index + 1] ?? 0) + 1);
  const starts = [...bounds].sort((a, b) => a - b);
  const symbolAt = new Map(starts.map((start, symbol) => [start, symbol]));
  for (const [ranges, symbols] of sets) {
    const found = new Set<number>();
    for (let index = 0; index < ranges.length; index += 2) {
      const end = symbolAt.get((ranges[index + 1] ?? 0) + 1) ?? 0;
      for (let symbol = symbolAt.get(ranges[index] ?? 0) ?? 0; symbol < end; symbol++) found.add(symbol);
    }
    symbols.push(...found);
  }
  return nodes.map(node => (node.type === 'set' ? (sets.get(node.ranges) ?? []) : []));
}
