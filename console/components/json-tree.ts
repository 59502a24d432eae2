// A JSON value as a tree of collapsible branches. A branch is rendered when it is opened for the first time.
import { ExactNumber } from '../api/exact-json.ts';
import { h } from '../dom.ts';
import { formatCount } from '../format.ts';

/** Branches down to this level are open at first, unless they are long arrays. */
const OPEN_LEVELS = 2;
/** A longer array is closed at first. */
const MAX_OPEN_ITEMS = 10;
/** An open branch shows this many children, and as many more each time the user asks for them. */
const CHILDREN_PER_STEP = 100;

/** Wraps the element of a value that is no branch. `path` has the keys that lead to the value. */
export type DecorateLeaf = (leaf: HTMLElement, path: readonly string[], value: unknown) => HTMLElement;

export function createJsonTree(value: unknown, decorate: DecorateLeaf = leaf => leaf): HTMLElement {
  const tree = h('div', { class: 'tree' });
  if (isBranch(value)) appendChildren(tree, value, [], decorate);
  else tree.append(decorate(createLeaf(value), [], value));
  return tree;
}

function appendChildren(
  host: HTMLElement,
  value: object,
  path: readonly string[],
  decorate: DecorateLeaf,
  from = 0,
): void {
  const entries = Object.entries(value);
  const next = from + CHILDREN_PER_STEP;
  host.append(
    ...entries.slice(from, next).map(([key, child]) => createNode([...path, key], child, decorate)),
  );
  const rest = entries.length - next;
  if (rest <= 0) return;
  const more = h(
    'button',
    { type: 'button', class: 'button tiny tree-more' },
    `Show ${formatCount(Math.min(rest, CHILDREN_PER_STEP))} more of ${formatCount(rest)}`,
  );
  more.addEventListener('click', () => {
    more.remove();
    appendChildren(host, value, path, decorate, next);
  });
  host.append(more);
}

function createNode(path: readonly string[], value: unknown, decorate: DecorateLeaf): HTMLElement {
  const name = h('span', { class: 'tree-key' }, path.at(-1));
  if (!isBranch(value) || Object.keys(value).length === 0)
    return h(
      'div',
      { class: 'tree-leaf' },
      name,
      h('span', {}, ': '),
      isBranch(value) ? createLeaf(value) : decorate(createLeaf(value), path, value),
    );
  const branch = h(
    'details',
    { open: path.length <= OPEN_LEVELS && !isLongArray(value) },
    h('summary', {}, name, h('span', { class: 'tree-size' }, describeSize(value))),
  );
  const render = () => {
    if (!branch.open || branch.childElementCount > 1) return;
    const children = h('div', { class: 'tree-children' });
    appendChildren(children, value, path, decorate);
    branch.append(children);
  };
  branch.addEventListener('toggle', render);
  render();
  return branch;
}

function createLeaf(value: unknown): HTMLElement {
  if (value instanceof ExactNumber) return h('span', { class: 'tree-number' }, value.digits);
  if (Array.isArray(value)) return h('span', { class: 'tree-empty' }, '[ ]');
  if (value !== null && typeof value === 'object') return h('span', { class: 'tree-empty' }, '{ }');
  if (typeof value === 'string') return h('span', { class: 'tree-text' }, value === '' ? '""' : value);
  return h('span', { class: value === null ? 'tree-empty' : `tree-${typeof value}` }, String(value));
}

function isBranch(value: unknown): value is object {
  return value !== null && typeof value === 'object' && !(value instanceof ExactNumber);
}

function isLongArray(value: object): boolean {
  return Array.isArray(value) && value.length > MAX_OPEN_ITEMS;
}

function describeSize(value: object): string {
  const size = Object.keys(value).length;
  if (Array.isArray(value)) return `[${formatCount(size)}]`;
  return size === 1 ? '1 field' : `${formatCount(size)} fields`;
}
