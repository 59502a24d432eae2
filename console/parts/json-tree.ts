// A JSON value as a tree that opens and closes, by keyboard too; branches are drawn when they first open.
import { ExactNumber } from '../api/exact-json.ts';
import { h } from '../dom.ts';

/** Branches down to here are open from the start. */
const OPEN_LEVELS = 2;

export function makeJsonTree(value: unknown): HTMLElement {
  if (!isBranch(value)) return h('div', { class: 'tree' }, leaf(value));
  return h('div', { class: 'tree' }, ...entriesOf(value).map(entry => drawEntry(entry, 0)));
}

function drawEntry([key, value]: [string, unknown], level: number): HTMLElement {
  const name = h('span', { class: 'tree-key' }, key);
  if (!isBranch(value) || entriesOf(value).length === 0)
    return h('div', { class: 'tree-leaf' }, name, h('span', { class: 'tree-colon' }, ': '), leaf(value));
  const branch = h(
    'details',
    { open: level < OPEN_LEVELS },
    h('summary', {}, name, h('span', { class: 'tree-size' }, describeSize(value))),
  );
  const fill = () => {
    if (!branch.open || branch.childElementCount > 1) return;
    branch.append(
      h('div', { class: 'tree-children' }, ...entriesOf(value).map(entry => drawEntry(entry, level + 1))),
    );
  };
  branch.addEventListener('toggle', fill);
  fill();
  return branch;
}

function leaf(value: unknown): HTMLElement {
  if (value instanceof ExactNumber) return h('span', { class: 'tree-number' }, value.digits);
  if (Array.isArray(value)) return h('span', { class: 'tree-nothing' }, '[ ]');
  if (value !== null && typeof value === 'object') return h('span', { class: 'tree-nothing' }, '{ }');
  if (typeof value === 'string') return h('span', { class: 'tree-text' }, value === '' ? '""' : value);
  return h('span', { class: value === null ? 'tree-nothing' : `tree-${typeof value}` }, String(value));
}

function isBranch(value: unknown): value is object {
  return value !== null && typeof value === 'object' && !(value instanceof ExactNumber);
}

function entriesOf(value: object): [string, unknown][] {
  return Object.entries(value);
}

function describeSize(value: object): string {
  const size = Object.keys(value).length;
  if (Array.isArray(value)) return `[${size}]`;
  return size === 1 ? '1 field' : `${size} fields`;
}
