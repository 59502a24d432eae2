// The cost of a regular expression: the size of its deterministic automaton (DFA). RE2, which both stores use, matches with a
// DFA in constant time per byte as long as the DFA fits into its memory. Otherwise it tracks every position of the expression
// that a match can be at, which can be a thousand times slower, and a query cannot be cancelled within a block of rows.
import { EDGE, MATCH, type Neighbour, Nfa, OTHER_CHARACTER, TooExpensive } from './pattern-nfa.ts';
import { assignSymbols, type Symbols } from './pattern-symbols.ts';
import { type Assertion, type PatternNode, parsePattern } from './pattern-syntax.ts';

/**
 * The highest allowed cost. Measured with DuckDB on blocks of 2,048 URLs of 8 KiB: expressions just below this limit take 0.2 s
 * for a block, those with 20 times the cost take 10 s to minutes.
 */
export const MAX_PATTERN_COST = 10_000;

/** Bounds the time to compute the cost to tens of milliseconds. An expression that needs more counts as too expensive. */
const MAX_STEPS = 500_000;

/**
 * Returns the cost. Each Unicode class of the expression adds a fixed amount (Nfa.fixedCost). Each state of the DFA adds 1 and
 * the weights of its positions. Plain text costs 1 for each character, and an expression that matches at the start of every text
 * costs 0. Returns Infinity if the cost or the steps to compute it exceed a limit, and undefined for an expression with unknown
 * syntax.
 */
export function computePatternCost(pattern: string): number | undefined {
  const tree = parsePattern(pattern);
  if (tree === undefined) return undefined;
  if (isPlainText(tree)) return tree.nodes.length; // both stores search for it without an automaton
  try {
    return Math.max(...listSearches(tree).map(search => new Dfa(search).computeCost()));
  } catch (error) {
    if (error instanceof TooExpensive) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

function isPlainText(tree: PatternNode): tree is PatternNode & { type: 'concat' } {
  const isCharacter = (node: PatternNode) =>
    node.type === 'set' && node.ranges.length === 2 && node.ranges[0] === node.ranges[1];
  return tree.type === 'concat' && tree.nodes.every(isCharacter);
}

/**
 * A way in which RE2 searches a text. `isAnchored`: a match can begin only where the search begins. Only a backward search is
 * anchored. A forward search for an expression with ^ is not: the assertion in the tree already restricts where a match begins.
 */
interface Search {
  readonly tree: PatternNode;
  readonly isAnchored: boolean;
}

/**
 * RE2 searches backwards, from the end of the text, if every match ends there but need not begin at the start. It does not
 * recognize all such expressions. Returns both directions unless it is certain which one RE2 uses.
 */
function listSearches(tree: PatternNode): Search[] {
  const forwards = { tree, isAnchored: false };
  const backwards = { tree: reverse(tree), isAnchored: true };
  if (!requiresAssertion(tree, 'text_end') || hasOuterAssertion(tree, 'text_start')) return [forwards];
  const isCertain = hasOuterAssertion(tree, 'text_end') && !requiresAssertion(tree, 'text_start');
  return isCertain ? [backwards] : [forwards, backwards];
}

type TextEdge = 'text_start' | 'text_end';

/** Whether the expression begins or ends with the assertion itself, which RE2 recognizes. */
function hasOuterAssertion(tree: PatternNode, edge: TextEdge): boolean {
  const outermost = tree.type === 'concat' ? tree.nodes.at(edge === 'text_start' ? 0 : -1) : tree;
  return outermost?.type === 'assertion' && outermost.assertion === edge;
}

/** Whether every match has to pass the assertion, which can be inside a group. RE2 recognizes only some of these expressions. */
function requiresAssertion(tree: PatternNode, edge: TextEdge): boolean {
  if (tree.type === 'alternate') return tree.nodes.every(node => requiresAssertion(node, edge));
  if (tree.type === 'repeat') return tree.min > 0 && requiresAssertion(tree.node, edge);
  if (tree.type !== 'concat') return hasOuterAssertion(tree, edge);
  return tree.nodes.some(node => requiresAssertion(node, edge));
}

const MIRRORED: Readonly<Record<Assertion, Assertion>> = {
  text_start: 'text_end',
  text_end: 'text_start',
  line_start: 'line_end',
  line_end: 'line_start',
  word_boundary: 'word_boundary',
  not_word_boundary: 'not_word_boundary',
};

/** Matches the same texts, read backwards. */
function reverse(tree: PatternNode): PatternNode {
  switch (tree.type) {
    case 'set':
      return tree;
    case 'assertion':
      return { type: 'assertion', assertion: MIRRORED[tree.assertion] };
    case 'concat':
      return { type: 'concat', nodes: tree.nodes.map(reverse).reverse() };
    case 'alternate':
      return { type: 'alternate', nodes: tree.nodes.map(reverse) };
    case 'repeat':
      return { ...tree, node: reverse(tree.node) };
  }
}

/** Separates the groups of a state. Higher than every id of a node. */
const SEPARATOR = 0xffff;

interface State {
  readonly positions: readonly number[];
  /** The class of the last character; OTHER_CHARACTER if no assertion depends on it. */
  readonly before: Neighbour;
}

/** The positions that follow a state, by symbol. */
type Successors = Map<number, number[]>;

/**
 * The subset construction, as RE2 does it. A position is the id of an NFA node of type `set`, `match` or `assertion`; an assertion
 * is decided when the next character is known. A DFA state is an ordered list of groups of positions: one group for each start of a
 * match, the earliest start first. A position is kept only in its first group. Unless the search is anchored, every state also
 * contains the start positions, because a match can begin at the next character; they are not stored. A state with a complete match
 * is final, because the engine stops there. A match that still needs an assertion is not complete.
 */
class Dfa {
  readonly #nfa: Nfa;
  readonly #isAnchored: boolean;
  readonly #symbols: Symbols;
  readonly #closures = new Map<number, readonly number[]>();
  /** What follows the start positions, by class of the last character. An unanchored search adds it to what follows any state. */
  readonly #startSuccessors: (Successors | undefined)[] = [];
  /** Whether `#startSuccessors` may differ by the class of the last character. If so, every state has to store that class. */
  readonly #startNeedsNeighbour: boolean;
  readonly #states = new Set<string>();
  readonly #queue: State[] = [];
  #cost = 0;
  #steps = 0;

  constructor({ tree, isAnchored }: Search) {
    this.#nfa = new Nfa(tree, MAX_PATTERN_COST);
    this.#isAnchored = isAnchored;
    this.#symbols = assignSymbols(this.#nfa);
    const firstByNeighbour = this.#nfa.neighbours.map(before => this.#nfa.closure(this.#nfa.start, before));
    const [first] = firstByNeighbour;
    this.#startNeedsNeighbour =
      !isAnchored && firstByNeighbour.some(ids => this.#hasAssertion(ids) || ids.join() !== first?.join());
  }

  computeCost(): number {
    const { start, neighbours } = this.#nfa;
    const first = this.#nfa.closure(start, EDGE);
    this.#cost = this.#nfa.fixedCost;
    if (first.includes(MATCH)) return 0; // an empty match at the start of every text
    this.#enter(first, EDGE);
    for (const before of this.#isAnchored ? [] : neighbours) {
      const successors = this.#step({ positions: this.#nfa.closure(start, before), before });
      this.#startSuccessors[before] = successors;
      for (const [symbol, positions] of successors) this.#enter(positions, this.#neighbourOf(symbol));
    }
    // The loop also visits the states that #enter adds to the queue.
    for (const state of this.#queue)
      for (const [symbol, positions] of this.#step(state)) {
        positions.push(SEPARATOR, ...(this.#startSuccessors[state.before]?.get(symbol) ?? []));
        this.#enter(positions, this.#neighbourOf(symbol));
      }
    return this.#cost;
  }

  /** Returns what follows a state. The groups are not normalized yet, so they may contain duplicates. */
  #step({ positions, before }: State): Successors {
    const successors: Successors = new Map();
    for (const id of positions) {
      if (id === SEPARATOR) {
        for (const groups of successors.values()) groups.push(SEPARATOR);
        this.#spend(successors.size);
      } else if (this.#nfa.nodes[id]?.type === 'assertion') this.#passAssertion(id, before, successors);
      else for (const symbol of this.#symbols.accepted[id] ?? []) this.#consume(id, symbol, successors);
    }
    return successors;
  }

  /** Adds what follows if the next character makes the assertion true. */
  #passAssertion(id: number, before: Neighbour, successors: Successors): void {
    for (const after of this.#nfa.neighbours)
      for (const passed of this.#closure(id, before, after))
        if (passed === MATCH) {
          for (const [symbol, neighbour] of this.#symbols.neighbourOf.entries())
            if (neighbour === after) this.#add(symbol, [MATCH], successors);
        } else {
          for (const symbol of this.#symbols.accepted[passed] ?? [])
            if (this.#neighbourOf(symbol) === after) this.#consume(passed, symbol, successors);
        }
  }

  #consume(id: number, symbol: number, successors: Successors): void {
    const node = this.#nfa.nodes[id];
    if (node?.type === 'set')
      this.#add(symbol, this.#closure(node.next, this.#neighbourOf(symbol)), successors);
  }

  #add(symbol: number, targets: readonly number[], successors: Successors): void {
    const positions = successors.get(symbol);
    if (positions === undefined) successors.set(symbol, [...targets]);
    else for (const target of targets) positions.push(target);
    this.#spend(1 + targets.length);
  }

  #closure(id: number, before: Neighbour, after?: Neighbour): readonly number[] {
    const key = (id * 4 + before) * 4 + (after ?? EDGE); // no other key has EDGE here: `after` is never EDGE
    const known = this.#closures.get(key);
    if (known !== undefined) return known;
    const found = this.#nfa.closure(id, before, after);
    this.#spend(found.length);
    this.#closures.set(key, found);
    return found;
  }

  /** Adds a state to the cost and to the queue, unless it is known. A state with a complete match is not queued. */
  #enter(positions: readonly number[], before: Neighbour): void {
    this.#spend(positions.length);
    const normalized = normalize(positions);
    const needsNeighbour = this.#startNeedsNeighbour || this.#hasAssertion(normalized);
    const state = { positions: normalized, before: needsNeighbour ? before : OTHER_CHARACTER };
    const key = String.fromCharCode(state.before, ...normalized);
    if (this.#states.has(key)) return;
    this.#states.add(key);
    this.#cost++;
    for (const id of normalized) this.#cost += this.#nfa.weightOf(id);
    if (this.#cost > MAX_PATTERN_COST) throw new TooExpensive();
    if (!normalized.includes(MATCH)) this.#queue.push(state);
  }

  #hasAssertion(positions: readonly number[]): boolean {
    return positions.some(id => this.#nfa.nodes[id]?.type === 'assertion');
  }

  #neighbourOf(symbol: number): Neighbour {
    return this.#symbols.neighbourOf[symbol] ?? OTHER_CHARACTER;
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
