// A JSON value as a tree of collapsible branches. A branch is rendered when it is opened for the first time.
import { ExactNumber } from '../api/exact-json.ts';
import { h } from '../dom.ts';

/** Branches on these levels are open at first. */
const OPEN_LEVELS = 2;

export function createJsonTree(value: unknown): HTMLElement {
  if (!isBranch(value)) return h('div', { class: 'tree' }, createLeaf(value));
  return h('div', { class: 'tree' }, ...createNodes(value, 0));
}

function createNodes(value: object, level: number): HTMLElement[] {
  return Object.entries(value).map(([key, child]) => createNode(key, child, level));
}

function createNode(key: string, value: unknown, level: number): HTMLElement {
  const name = h('span', { class: 'tree-key' }, key);
  if (!isBranch(value) || Object.keys(value).length === 0)
    return h('div', { class: 'tree-leaf' }, name, h('span', {}, ': '), createLeaf(value));
  const branch = h(
    'details',
    { open: level < OPEN_LEVELS },
    h('summary', {}, name, h('span', { class: 'tree-size' }, describeSize(value))),
  );
  const render = () => {
    if (!branch.open || branch.childElementCount > 1) return;
    branch.append(h('div', { class: 'tree-children' }, ...createNodes(value, level + 1)));
  };
  branch.addEventListener('toggle', render);
  render();
  return branch;
}

function createLeaf(value: unknown): HTMLElement {
  if (value instanceof ExactNumber) return h('span', { class: 'tree-number' }, value.digits);
  if (Array.isArray(value)) return h('span', { class: 'tree-empty' }, '[ ]');
  if (value !== null && typeof value === 'object') return h('span', { class: 'tree-empty' }, '{ }');
  if (typeof value === 'string') return h('span', {}, value === '' ? '""' : value);
  return h('span', { class: value === null ? 'tree-empty' : `tree-${typeof value}` }, String(value));
}

function isBranch(value: unknown): value is object {
  return value !== null && typeof value === 'object' && !(value instanceof ExactNumber);
}

function describeSize(value: object): string {
  const size = Object.keys(value).length;
  if (Array.isArray(value)) return `[${size}]`;
  return size === 1 ? '1 field' : `${size} fields`;
}
