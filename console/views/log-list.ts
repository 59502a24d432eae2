// The table of log records. Each row expands to the details of its record and stays expanded across refreshes.
import type { Row } from '../api/client.ts';
import { createId, h, replaceChildren, setAttribute } from '../dom.ts';
import { formatDay, formatTimeMillis, formatUtc, microsToIso, timeZone } from '../format.ts';
import { type LogColumn, STATUS_COLUMN } from '../logs/kinds.ts';
import { createRecordDetails, type RecordActions } from '../logs/record-details.ts';
import { readMessage, readMicros, readStatus, toRowKey } from '../logs/record-fields.ts';

export interface LogListOptions {
  /** The columns between the time and the message. */
  readonly columns: readonly LogColumn[];
  /** Undefined: the list is not the result of a search. */
  readonly actions: RecordActions | undefined;
}

export class LogList {
  readonly element: HTMLElement;
  readonly #headings = h('tr', {});
  readonly #body = h('tbody', {});
  #options: LogListOptions = { columns: [STATUS_COLUMN], actions: undefined };
  #rows = new Map<string, LogRow>();
  #filter = '';

  constructor() {
    this.element = h(
      'table',
      { class: 'log-table', on: { keydown: event => this.#onKey(event) } },
      h(
        'caption',
        { class: 'visually-hidden' },
        'Log records, newest first. Press Enter to open a record and the arrow keys to move.',
      ),
      h('thead', {}, this.#headings),
      this.#body,
    );
    this.#renderHeadings();
  }

  /** Removes all rows, because the columns may differ. */
  setOptions(options: LogListOptions): void {
    this.#options = options;
    this.#renderHeadings();
    this.render([]);
  }

  /** A row is open or has the focus, or the user has scrolled into the list: it must not move now. */
  get isInUse(): boolean {
    return (
      this.isScrolled ||
      this.#body.contains(document.activeElement) ||
      [...this.#rows.values()].some(({ isOpen }) => isOpen())
    );
  }

  get isScrolled(): boolean {
    return this.element.getBoundingClientRect().top < 0;
  }

  /** Reuses the elements of records that are already shown, so that they keep their state. */
  render(records: readonly Row[]): void {
    const previous = this.#rows;
    this.#rows = new Map(
      records.map(record => {
        const key = toRowKey(record);
        return [key, previous.get(key) ?? createLogRow(record, this.#options)];
      }),
    );
    const focused = document.activeElement;
    const elements = [...this.#rows.values()].flatMap(({ summary, details }) => [summary, details]);
    replaceChildren(this.#body, ...elements);
    if (focused instanceof HTMLElement && this.#body.contains(focused))
      focused.focus({ preventScroll: true });
    this.filter(this.#filter);
  }

  /** Opens the row of a record and marks it as the one that the page is about. */
  highlight(record: Row): void {
    this.mark(record)?.toggle(true);
  }

  mark(record: Row): LogRow | undefined {
    const row = this.#rows.get(toRowKey(record));
    if (row !== undefined) setAttribute(row.summary, 'aria-current', 'true');
    return row;
  }

  /** Moves the focus to the next row (1) or the previous one (-1); to the first row if no row has it. */
  moveFocus(step: number): void {
    const visible = [...this.#rows.values()].filter(({ summary }) => !summary.hidden);
    const current = visible.findIndex(({ summary, details }) =>
      [summary, details].some(element => element.contains(document.activeElement)),
    );
    visible[Math.min(Math.max(current + step, 0), visible.length - 1)]?.button.focus();
  }

  /** Long messages wrap, or end with an ellipsis. */
  setWrapped(isWrapped: boolean): void {
    this.element.classList.toggle('wrapped', isWrapped);
  }

  focusFirst(): void {
    const [first] = this.#rows.values();
    first?.button.focus();
  }

  /** Hides the records whose status, message and id do not contain the text. Returns the number of visible records. */
  filter(text: string): number {
    this.#filter = text;
    const lowerCaseText = text.toLowerCase();
    let count = 0;
    for (const { record, summary, details, isOpen } of this.#rows.values()) {
      const matches = `${readStatus(record) ?? ''} ${readMessage(record)} ${record['id']}`
        .toLowerCase()
        .includes(lowerCaseText);
      if (matches) count += 1;
      summary.hidden = !matches;
      details.hidden = !matches || !isOpen();
    }
    return count;
  }

  #renderHeadings(): void {
    replaceChildren(
      this.#headings,
      h('th', { scope: 'col', class: 'column-time' }, 'Time ', h('small', {}, timeZone)),
      ...this.#options.columns.map(({ heading, name, numeric }) =>
        h(
          'th',
          { scope: 'col', class: `column-${toClass(name)}${numeric === true ? ' number' : ''}` },
          heading,
        ),
      ),
      h('th', { scope: 'col' }, 'Message'),
    );
  }

  #onKey(event: KeyboardEvent): void {
    const visible = [...this.#rows.values()].filter(({ summary }) => !summary.hidden);
    if (event.key === 'Escape') closeRowAt(event.target, visible);
    const current = visible.findIndex(({ button }) => button === event.target);
    if (current === -1) return;
    const targets: Record<string, number> = {
      ArrowDown: Math.min(current + 1, visible.length - 1),
      ArrowUp: Math.max(current - 1, 0),
      Home: 0,
      End: visible.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    visible[target]?.button.focus();
  }
}

/** A path in the metadata has no width of its own. */
const toClass = (name: string): string => (/^[a-z_]+$/.test(name) ? name : 'other');

interface LogRow {
  readonly record: Row;
  readonly summary: HTMLTableRowElement;
  /** The table row below the summary, hidden while the record is collapsed. */
  readonly details: HTMLTableRowElement;
  readonly button: HTMLButtonElement;
  isOpen(): boolean;
  toggle(isOpen: boolean): void;
}

/** Closes the row of an element, which can be in its details, and keeps the focus in the row. */
function closeRowAt(target: EventTarget | null, rows: readonly LogRow[]): void {
  const row = rows.find(
    ({ button, details }) => button === target || (target instanceof Node && details.contains(target)),
  );
  if (row === undefined) return;
  row.toggle(false);
  row.button.focus();
}

function createLogRow(record: Row, { columns, actions }: LogListOptions): LogRow {
  const detailsId = createId('details');
  const button = createToggle(record, detailsId);
  const summary = h(
    'tr',
    { class: 'log-row' },
    h('td', {}, button),
    ...columns.map((column, i) => createCell(record, column, i)),
    h('td', { class: 'log-message' }, h('span', {}, readMessage(record))),
  );
  const cell = h('td', { colspan: columns.length + 2 });
  const details = h('tr', { class: 'log-details', id: detailsId, hidden: true }, cell);
  const isOpen = () => button.getAttribute('aria-expanded') === 'true';
  const toggle = (shouldOpen: boolean) => {
    if (shouldOpen && cell.childElementCount === 0) cell.append(createRecordDetails(record, actions));
    details.hidden = !shouldOpen;
    button.setAttribute('aria-expanded', String(shouldOpen));
    summary.classList.toggle('open', shouldOpen);
  };
  summary.addEventListener('click', () => {
    if (getSelection()?.isCollapsed !== false) toggle(!isOpen()); // not if the click ends a text selection
  });
  return { record, summary, details, button, isOpen, toggle };
}

function createToggle(record: Row, detailsId: string): HTMLButtonElement {
  const micros = readMicros(record);
  const ms = Math.floor(micros / 1000);
  return h(
    'button',
    { type: 'button', class: 'log-toggle', 'aria-expanded': 'false', 'aria-controls': detailsId },
    h(
      'time',
      { datetime: microsToIso(micros), title: formatUtc(ms) },
      h('span', { class: 'log-day' }, formatDay(ms)),
      ' ',
      formatTimeMillis(ms),
    ),
  );
}

/** Of the columns between the time and the message, a phone shows only the first. */
function createCell(record: Row, column: LogColumn, index: number): HTMLElement {
  const classes = [index > 0 ? 'log-extra' : undefined, column.numeric === true ? 'number' : undefined];
  const text = column.read(record) ?? '–';
  return h(
    'td',
    { class: classes.filter(name => name !== undefined).join(' ') || undefined },
    column.createCell?.(record) ?? h('span', { class: 'log-text', title: text }, text),
  );
}
