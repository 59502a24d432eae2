// Tables of rows. A cell with a number or a time also carries the exact value, in a `data` or `time` element.
import { formatJson } from '../api/exact-json.ts';
import { h, setAttribute } from '../dom.ts';
import { formatDateTime, formatDecimal, formatUtc, microsToIso } from '../format.ts';

export interface TableColumn {
  readonly heading: string;
  readonly title?: string | undefined;
  readonly numeric?: boolean;
}

export type Cell = Node | string;

/** The order of a table that the user has chosen; a table that replaces another one keeps it. */
export interface TableSort {
  column?: number;
  /** 1: ascending; -1: descending. */
  direction?: 1 | -1;
}

/** A table whose headings sort the rows by the values of a column. `rows[i]` is the row of `values[i]`. */
export function createSortableTable(
  caption: string,
  columns: readonly TableColumn[],
  rows: readonly (readonly Cell[])[],
  values: readonly (readonly unknown[])[],
  sort: TableSort,
): HTMLElement {
  const element = createTable(caption, columns, rows);
  const heads = [...element.querySelectorAll('th')];
  const body = element.querySelector('tbody');
  const lines = [...(body?.children ?? [])];
  const apply = () => {
    const { column = -1, direction = 1 } = sort;
    for (const [i, head] of heads.entries())
      setAttribute(
        head,
        'aria-sort',
        i !== column ? undefined : direction === 1 ? 'ascending' : 'descending',
      );
    const compareLines = (a: number, b: number) =>
      direction * compare(values[a]?.[column], values[b]?.[column]);
    const order = column === -1 ? [] : [...lines.keys()].sort(compareLines);
    body?.append(...order.flatMap(index => lines[index] ?? []));
  };
  for (const [i, head] of heads.entries()) {
    const button = h('button', { type: 'button', class: 'sort' }, ...head.childNodes);
    button.addEventListener('click', () => {
      sort.direction = sort.column === i && sort.direction === 1 ? -1 : 1;
      sort.column = i;
      apply();
    });
    head.replaceChildren(button);
  }
  apply();
  return element;
}

/** Numbers by their size, everything else as text; absent values are first. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [left, right] = [formatCell(a ?? ''), formatCell(b ?? '')];
  return left.localeCompare(right, undefined, { numeric: true });
}

export function createTable(
  caption: string,
  columns: readonly TableColumn[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const classes = columns.map(({ numeric }) => (numeric === true ? 'number' : undefined));
  const head = columns.map(({ heading, title }, i) =>
    h('th', { scope: 'col', class: classes[i], title }, heading),
  );
  const body = rows.map(cells =>
    h('tr', {}, ...cells.map((cell, i) => h('td', { class: classes[i] }, cell))),
  );
  return h(
    'div',
    { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h(
      'table',
      {},
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', {}, h('tr', {}, ...head)),
      h('tbody', {}, ...body),
    ),
  );
}

/** A table that is collapsed at first. It is created when the user opens it, and updated only while it is open. */
export class CollapsibleTable {
  readonly element: HTMLDetailsElement;
  readonly #host = h('div', {});
  #createTable: (() => HTMLElement) | undefined;

  constructor(summary: string) {
    this.element = h('details', { class: 'card collapsible-table' }, h('summary', {}, summary), this.#host);
    this.element.addEventListener('toggle', () => this.#update());
  }

  render(create: () => HTMLElement): void {
    this.#createTable = create;
    this.#update();
  }

  #update(): void {
    if (this.element.open && this.#createTable !== undefined) this.#host.replaceChildren(this.#createTable());
  }
}

export function createNumberCell(value: unknown): Cell {
  if (typeof value !== 'number') return formatCell(value);
  return h('data', { value }, formatDecimal(value));
}

export function createTimeCell(micros: number): Cell {
  const ms = Math.floor(micros / 1000);
  return h('time', { datetime: microsToIso(micros), title: formatUtc(ms) }, formatDateTime(ms));
}

export function formatCell(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'object' ? formatJson(value) : String(value);
}
