// One record of the log: a line that opens to everything that is known of it.
import type { Row } from '../api/answer.ts';
import { formatJson } from '../api/exact-json.ts';
import { h, newId } from '../dom.ts';
import { makeCopyButton } from '../parts/copy-button.ts';
import { makeJsonTree } from '../parts/json-tree.ts';
import { formatClockMillis, formatDay, formatFull, formatUtc, microsToIso } from '../times.ts';
import { type LogFields, readLogFields, statusClass } from './log-fields.ts';

export interface LogRow {
  readonly fields: LogFields;
  /** The line, and the line below it that holds the details while it is open. */
  readonly line: HTMLTableRowElement;
  readonly details: HTMLTableRowElement;
  readonly button: HTMLButtonElement;
  toggle(open?: boolean): void;
}

export function makeLogRow(row: Row): LogRow {
  const fields = readLogFields(row);
  const ms = Math.floor(fields.timestamp / 1000);
  const detailsId = newId('details');
  const button = h(
    'button',
    { type: 'button', class: 'log-opener', 'aria-expanded': 'false', 'aria-controls': detailsId },
    h(
      'time',
      { datetime: microsToIso(fields.timestamp), title: formatUtc(ms) },
      h('span', { class: 'log-day' }, formatDay(ms)),
      ' ',
      formatClockMillis(ms),
    ),
  );
  const line = h(
    'tr',
    { class: 'log-line' },
    h('td', { class: 'log-time' }, button),
    h(
      'td',
      { class: 'log-status' },
      h('span', { class: statusClass(fields.status) }, String(fields.status ?? '–')),
    ),
    h('td', { class: 'log-message' }, h('span', {}, fields.message)),
  );
  const cell = h('td', { colspan: 3 });
  const details = h('tr', { class: 'log-details', id: detailsId, hidden: true }, cell);
  const toggle = (open = details.hidden === true) => {
    if (open && cell.childElementCount === 0) cell.append(drawDetails(row, fields, ms));
    details.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
    line.classList.toggle('open', open);
  };
  line.addEventListener('click', () => {
    if (getSelection()?.isCollapsed !== false) toggle(); // selecting text is not asking for the details
  });
  return { fields, line, details, button, toggle };
}

function drawDetails(row: Row, { id, message, timestamp }: LogFields, ms: number): HTMLElement {
  return h(
    'div',
    { class: 'details' },
    h(
      'div',
      { class: 'details-head' },
      h('p', { class: 'details-message' }, message),
      makeCopyButton('Copy as JSON', () => formatJson(row)),
    ),
    h(
      'dl',
      {},
      h('dt', {}, 'Time'),
      h('dd', {}, formatFull(ms)),
      h('dt', {}, 'UTC'),
      h('dd', { class: 'mono' }, microsToIso(timestamp)),
      h('dt', {}, 'Id'),
      h('dd', { class: 'mono' }, id),
    ),
    h('h2', {}, 'Metadata'),
    makeJsonTree(row['metadata']),
  );
}
