// Rows as a real table. Numbers and times carry their exact value beside what is shown.
import { formatJson } from '../api/exact-json.ts';
import { h } from '../dom.ts';
import { formatExact } from '../numbers.ts';
import { formatFull, formatUtc, microsToIso } from '../times.ts';

export interface TableColumn {
  readonly heading: string;
  readonly title?: string | undefined;
  readonly numeric?: boolean;
}

export type Cell = Node | string;

export function makeTable(
  caption: string,
  columns: readonly TableColumn[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const alignment = columns.map(({ numeric }) => (numeric === true ? 'number' : undefined));
  const head = columns.map(({ heading, title }, i) =>
    h('th', { scope: 'col', class: alignment[i], title }, heading),
  );
  const body = rows.map(cells =>
    h('tr', {}, ...cells.map((cell, i) => h('td', { class: alignment[i] }, cell))),
  );
  return h(
    'div',
    { class: 'table-frame', tabindex: 0, role: 'region', 'aria-label': caption },
    h(
      'table',
      {},
      h('caption', { class: 'for-screen-readers' }, caption),
      h('thead', {}, h('tr', {}, ...head)),
      h('tbody', {}, ...body),
    ),
  );
}

/** The table behind a chart: closed until somebody wants it, filled when it opens and whenever it is open. */
export class TableBehind {
  readonly element: HTMLDetailsElement;
  readonly #host = h('div', {});
  #make: (() => HTMLElement) | undefined;

  constructor(summary: string) {
    this.element = h('details', { class: 'card table-behind' }, h('summary', {}, summary), this.#host);
    this.element.addEventListener('toggle', () => this.#fill());
  }

  draw(make: () => HTMLElement): void {
    this.#make = make;
    this.#fill();
  }

  #fill(): void {
    if (this.element.open && this.#make !== undefined) this.#host.replaceChildren(this.#make());
  }
}

export function numberCell(value: unknown): Cell {
  if (typeof value !== 'number') return value === null ? '–' : cellText(value);
  return h('data', { value }, formatExact(value));
}

/** From Unix microseconds. */
export function timeCell(micros: number): Cell {
  const ms = Math.floor(micros / 1000);
  return h('time', { datetime: microsToIso(micros), title: formatUtc(ms) }, formatFull(ms));
}

export function cellText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'object' ? formatJson(value) : String(value);
}
