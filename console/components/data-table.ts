// Tables of rows. A cell with a number or a time also carries the exact value, in a `data` or `time` element.
import { formatJson } from '../api/exact-json.ts';
import { h } from '../dom.ts';
import { formatDateTime, formatDecimal, formatUtc, microsToIso } from '../format.ts';

export interface TableColumn {
  readonly heading: string;
  readonly title?: string | undefined;
  readonly numeric?: boolean;
}

export type Cell = Node | string;

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
