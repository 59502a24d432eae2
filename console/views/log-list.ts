// The table of log records. Each row expands to the details of its record and stays expanded across refreshes.
import type { Row } from '../api/client.ts';
import { formatJson } from '../api/exact-json.ts';
import { createCopyButton } from '../components/controls.ts';
import { createJsonTree } from '../components/json-tree.ts';
import { createId, h, replaceChildren } from '../dom.ts';
import { formatDateTime, formatDay, formatTimeMillis, formatUtc, microsToIso, timeZone } from '../format.ts';

export class LogList {
  readonly element: HTMLElement;
  readonly #body = h('tbody', {});
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
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          h('th', { scope: 'col' }, 'Time ', h('small', {}, timeZone)),
          h('th', { scope: 'col' }, 'Status'),
          h('th', { scope: 'col' }, 'Message'),
        ),
      ),
      this.#body,
    );
  }

  /** Reuses the elements of records that are already shown, so that they keep their state. */
  render(records: readonly Row[]): void {
    const previous = this.#rows;
    this.#rows = new Map(
      records.map(record => {
        const key = toRowKey(record);
        return [key, previous.get(key) ?? createLogRow(record)];
      }),
    );
    const focused = document.activeElement;
    const elements = [...this.#rows.values()].flatMap(({ summary, details }) => [summary, details]);
    replaceChildren(this.#body, ...elements);
    if (focused instanceof HTMLElement && this.#body.contains(focused))
      focused.focus({ preventScroll: true });
    this.filter(this.#filter);
  }

  /** Hides the records whose status, message and id do not contain the text. Returns the number of visible records. */
  filter(text: string): number {
    this.#filter = text;
    const lowerCaseText = text.toLowerCase();
    let count = 0;
    for (const { fields, summary, details, button } of this.#rows.values()) {
      const matches = `${fields.status ?? ''} ${fields.message} ${fields.id}`
        .toLowerCase()
        .includes(lowerCaseText);
      if (matches) count += 1;
      summary.hidden = !matches;
      details.hidden = !matches || button.getAttribute('aria-expanded') !== 'true';
    }
    return count;
  }

  #onKey(event: KeyboardEvent): void {
    const visible = [...this.#rows.values()].filter(({ summary }) => !summary.hidden);
    const current = visible.findIndex(({ button }) => button === event.target);
    if (current === -1) return;
    if (event.key === 'Escape') visible[current]?.toggle(false);
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

/** Identifies a record within the results of a query. */
export function toRowKey(record: Row): string {
  return `${record['timestamp']} ${record['id']}`;
}

interface LogRow {
  readonly fields: LogFields;
  readonly summary: HTMLTableRowElement;
  /** The table row below the summary, hidden while the record is collapsed. */
  readonly details: HTMLTableRowElement;
  readonly button: HTMLButtonElement;
  toggle(isOpen?: boolean): void;
}

function createLogRow(record: Row): LogRow {
  const fields = readLogFields(record);
  const ms = Math.floor(fields.timestamp / 1000);
  const detailsId = createId('details');
  const button = h(
    'button',
    { type: 'button', class: 'log-toggle', 'aria-expanded': 'false', 'aria-controls': detailsId },
    h(
      'time',
      { datetime: microsToIso(fields.timestamp), title: formatUtc(ms) },
      h('span', { class: 'log-day' }, formatDay(ms)),
      ' ',
      formatTimeMillis(ms),
    ),
  );
  const summary = h(
    'tr',
    { class: 'log-row' },
    h('td', {}, button),
    h('td', {}, h('span', { class: statusClass(fields.status) }, String(fields.status ?? '–'))),
    h('td', { class: 'log-message' }, h('span', {}, fields.message)),
  );
  const cell = h('td', { colspan: 3 });
  const details = h('tr', { class: 'log-details', id: detailsId, hidden: true }, cell);
  const toggle = (isOpen = details.hidden === true) => {
    if (isOpen && cell.childElementCount === 0) cell.append(createDetails(record, fields, ms));
    details.hidden = !isOpen;
    button.setAttribute('aria-expanded', String(isOpen));
    summary.classList.toggle('open', isOpen);
  };
  summary.addEventListener('click', () => {
    if (getSelection()?.isCollapsed !== false) toggle(); // the click does not end a text selection
  });
  return { fields, summary, details, button, toggle };
}

function createDetails(record: Row, { id, message, timestamp }: LogFields, ms: number): HTMLElement {
  return h(
    'div',
    { class: 'details' },
    h(
      'div',
      { class: 'details-header' },
      h('p', { class: 'details-message' }, message),
      createCopyButton('Copy as JSON', () => formatJson(record)),
    ),
    h(
      'dl',
      {},
      h('dt', {}, 'Time'),
      h('dd', {}, formatDateTime(ms)),
      h('dt', {}, 'UTC'),
      h('dd', { class: 'mono' }, microsToIso(timestamp)),
      h('dt', {}, 'Id'),
      h('dd', { class: 'mono' }, id),
    ),
    h('h2', {}, 'Metadata'),
    createJsonTree(record['metadata']),
  );
}

interface LogFields {
  readonly id: string;
  /** Unix microseconds. */
  readonly timestamp: number;
  readonly message: string;
  readonly status: number | undefined;
}

function readLogFields(record: Row): LogFields {
  const { metadata } = record;
  return {
    id: String(record['id']),
    timestamp: Number(record['timestamp']),
    message: readMessage(record),
    status: parseStatus(
      readPath(metadata, 'response', 'status_code') ??
        readPath(metadata, 'status_code') ??
        readPath(metadata, 'status'),
    ),
  };
}

/** A record without a message shows the method and path of its request. */
function readMessage({ event_message: message, metadata }: Row): string {
  if (typeof message === 'string' && message !== '') return message;
  const request = [readPath(metadata, 'request', 'method'), readPath(metadata, 'request', 'path')];
  return request.filter(text => typeof text === 'string').join(' ') || '(no message)';
}

/** Some log shippers wrap every object in an array of one element. */
function readPath(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (Array.isArray(current)) current = current[0];
    if (current === null || typeof current !== 'object') return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

function parseStatus(value: unknown): number | undefined {
  const status = Number(value ?? Number.NaN);
  return Number.isInteger(status) && status >= 100 && status <= 999 ? status : undefined;
}

function statusClass(status: number | undefined): string {
  if (status === undefined) return 'status status-none';
  return `status status-${Math.min(5, Math.floor(status / 100))}`;
}
