// The list of log records: keeps a row that is open open when newer ones arrive, and lets the keyboard walk along it.
import type { Row } from '../api/answer.ts';
import { h, replaceChildren } from '../dom.ts';
import { timeZone } from '../times.ts';
import { type LogRow, makeLogRow } from './log-row.ts';

export class LogList {
  readonly element: HTMLElement;
  readonly #body = h('tbody', {});
  readonly #known = new Map<string, LogRow>();
  #shown: LogRow[] = [];
  #filter = '';

  constructor() {
    this.element = h(
      'table',
      { class: 'log-table', on: { keydown: event => this.#onKey(event) } },
      h(
        'caption',
        { class: 'for-screen-readers' },
        'Log records, newest first. Enter opens a record, arrow keys move.',
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

  /** Shows these records, in this order. */
  draw(rows: readonly Row[]): void {
    const before = new Map(this.#known);
    this.#known.clear();
    this.#shown = rows.map(row => {
      const key = `${row['timestamp']} ${row['id']}`;
      const logRow = before.get(key) ?? makeLogRow(row);
      this.#known.set(key, logRow);
      return logRow;
    });
    const focused = document.activeElement;
    replaceChildren(this.#body, ...this.#shown.flatMap(({ line, details }) => [line, details]));
    if (focused instanceof HTMLElement && this.#body.contains(focused))
      focused.focus({ preventScroll: true });
    this.filter(this.#filter);
  }

  /** Answers how many records hold the text, in message or status. */
  filter(text: string): number {
    this.#filter = text;
    const wanted = text.toLowerCase();
    let count = 0;
    for (const { fields, line, details, button } of this.#shown) {
      const matches = `${fields.status ?? ''} ${fields.message} ${fields.id}`.toLowerCase().includes(wanted);
      if (matches) count += 1;
      line.hidden = !matches;
      details.hidden = !matches || button.getAttribute('aria-expanded') !== 'true';
    }
    return count;
  }

  #onKey(event: KeyboardEvent): void {
    const visible = this.#shown.filter(({ line }) => !line.hidden);
    const at = visible.findIndex(({ button }) => button === event.target);
    if (at === -1) return;
    if (event.key === 'Escape') visible[at]?.toggle(false);
    const targets: Record<string, number> = {
      ArrowDown: Math.min(at + 1, visible.length - 1),
      ArrowUp: Math.max(at - 1, 0),
      Home: 0,
      End: visible.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    visible[target]?.button.focus();
  }
}
