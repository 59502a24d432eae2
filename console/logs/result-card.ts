// The card with the records of a search: how many there are, the list, and the buttons for older and newer pages. New records wait
// behind a button while the user reads: while a row is open or has the focus, or the list is scrolled.
import type { QueryResult } from '../api/client.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatCount, formatRecordCount } from '../format.ts';
import { LogList, type LogListOptions } from '../views/log-list.ts';
import { countNew, mergeNewer, type Page } from './live-tail.ts';

export interface ResultCardOptions {
  onOlder(): void;
  /** To the page that the user came from. */
  onNewer(): void;
  onNewest(): void;
  /** Loads the newest page again, because there are more new records than one page. */
  onReload(): void;
  /** Above the list, before the button that wraps messages. */
  readonly columnChooser: HTMLElement;
  readonly copyButton: HTMLElement;
  readonly downloadButton: HTMLElement;
}

/** The place of a page in the result of a search. */
export interface PagePlace {
  /** The number of records on newer pages. */
  readonly offset: number;
  readonly isNewest: boolean;
  readonly canGoNewer: boolean;
  /** The tier limits what the page shows. */
  readonly retentionNote: HTMLElement | undefined;
}

/** Local storage key: whether long messages wrap. */
const WRAP_KEY = 'dendro.wrap';
const readWrap = (): boolean => localStorage.getItem(WRAP_KEY) === 'on';

const EMPTY: Page = { rows: [], nextCursor: undefined };

export class ResultCard {
  readonly element: HTMLElement;
  readonly #options: ResultCardOptions;
  readonly #list = new LogList();
  readonly #count = h('p', { class: 'muted', role: 'status' });
  readonly #notes = h('div', { class: 'logs-notes' });
  readonly #newRecords: HTMLButtonElement;
  readonly #older: HTMLButtonElement;
  readonly #newer: HTMLButtonElement;
  readonly #newest: HTMLButtonElement;
  readonly #footer: HTMLElement;
  readonly #downloadButton: HTMLElement;
  #page = EMPTY;
  #place: PagePlace = { offset: 0, isNewest: true, canGoNewer: false, retentionNote: undefined };
  #total: number | undefined;
  /** The options of the list that is loading; undefined: the list on the page is the current one. */
  #nextOptions: LogListOptions | undefined;
  /**
   * The page with the new records, while the user still reads the old ones. 'reload': there are more new records than one page, so
   * the newest page has to be loaded again.
   */
  #waiting: Page | 'reload' | undefined;

  constructor(options: ResultCardOptions) {
    const { onOlder, onNewer, onNewest, copyButton, downloadButton, columnChooser } = options;
    this.#options = options;
    this.#newRecords = createButton('', 'button primary small new-records', event => {
      this.#showWaiting();
      if (this.#list.isScrolled) this.element.scrollIntoView({ block: 'start' });
      // `detail` is 0 if the button was pressed with the keyboard: then the first new record gets the focus. After a click it does
      // not, because a row with the focus holds back the next new records.
      if (event.detail === 0) this.#list.focusFirst();
    });
    this.#older = createButton('Older', 'button', onOlder);
    this.#newer = createButton('Newer', 'button', onNewer);
    this.#newest = createButton('Newest', 'button', onNewest);
    this.#downloadButton = downloadButton;
    this.#footer = h('div', { class: 'page-buttons' }, this.#newest, this.#newer, this.#older);
    this.element = h(
      'div',
      { class: 'card logs' },
      h(
        'div',
        { class: 'logs-header' },
        this.#count,
        h(
          'div',
          { class: 'logs-actions' },
          columnChooser,
          this.#createWrapButton(),
          copyButton,
          downloadButton,
        ),
      ),
      this.#notes,
      h('div', { class: 'new-records-bar', 'aria-live': 'polite' }, this.#newRecords),
      h('div', { id: 'records', tabindex: -1 }, this.#list.element),
      this.#footer,
    );
    this.#newRecords.hidden = true;
  }

  moveFocus(step: number): void {
    this.#list.moveFocus(step);
  }

  #createWrapButton(): HTMLElement {
    const button = createButton('Wrap', 'button small', () => {
      if (readWrap()) localStorage.removeItem(WRAP_KEY);
      else localStorage.setItem(WRAP_KEY, 'on');
      update();
    });
    const update = () => {
      button.setAttribute('aria-pressed', String(readWrap()));
      this.#list.setWrapped(readWrap());
    };
    update();
    return button;
  }

  /** Empty while another list is loading. */
  get page(): Page {
    return this.#nextOptions === undefined ? this.#page : EMPTY;
  }

  get isInUse(): boolean {
    return this.#nextOptions === undefined && this.#list.isInUse;
  }

  /** Keeps the old records until those of another list are loaded, but hides the buttons for older and newer pages. */
  startList(options: LogListOptions): void {
    this.#nextOptions = options;
    this.#setWaiting(undefined);
    this.#footer.hidden = true;
  }

  #replaceList(): void {
    if (this.#nextOptions === undefined) return;
    this.#list.setOptions(this.#nextOptions);
    this.#nextOptions = undefined;
  }

  showPage(result: QueryResult, place: PagePlace): void {
    this.#replaceList();
    this.#page = result;
    this.#place = place;
    this.#setWaiting(undefined);
    replaceChildren(this.#notes, ...createNotes(result, place));
    this.#render();
  }

  /** Adds the records of the live tail to the newest page. */
  showNewer(result: QueryResult): void {
    const merged = mergeNewer(this.#page, result);
    const count = countNew(this.#page.rows, result.rows);
    if (count === 0) return;
    const atLeast = merged === undefined ? 'at least ' : '';
    this.#setWaiting(
      merged ?? 'reload',
      `${atLeast}${formatCount(count)} new ${count === 1 ? 'record' : 'records'}`,
    );
    if (!this.#list.isInUse) this.#showWaiting();
  }

  /** The number of records that match the search; undefined if it is unknown. */
  setTotal(total: number | undefined): void {
    this.#total = total;
    if (this.#nextOptions === undefined) this.#renderCount();
  }

  /** Shows a record between its neighbours in time. */
  showSurroundings(result: QueryResult, header: HTMLElement): void {
    const isNewList = this.page.rows.length === 0;
    this.#replaceList();
    this.#page = { rows: result.rows, nextCursor: undefined };
    this.#setWaiting(undefined);
    replaceChildren(this.#notes, header);
    this.#list.render(result.rows);
    const record = result.rows.find(row => row['position'] === 0);
    if (record !== undefined && isNewList) this.#list.highlight(record);
    this.#count.textContent = `This record and ${formatCount(result.rows.length - 1)} around it`;
    this.#footer.hidden = true;
    this.#downloadButton.hidden = true;
  }

  #setWaiting(waiting: Page | 'reload' | undefined, text = ''): void {
    this.#waiting = waiting;
    if (this.#newRecords.textContent !== text) this.#newRecords.textContent = text;
    this.#newRecords.hidden = waiting === undefined;
  }

  #showWaiting(): void {
    const waiting = this.#waiting;
    this.#setWaiting(undefined);
    if (waiting === 'reload') this.#options.onReload();
    if (waiting === 'reload' || waiting === undefined) return;
    if (this.#total !== undefined) this.#total += countNew(this.#page.rows, waiting.rows);
    this.#page = waiting;
    this.#render();
  }

  #render(): void {
    this.#list.render(this.#page.rows);
    this.#older.hidden = this.#page.nextCursor === undefined;
    this.#newer.hidden = !this.#place.canGoNewer;
    this.#newest.hidden = this.#place.isNewest;
    this.#footer.hidden = [this.#older, this.#newer, this.#newest].every(({ hidden }) => hidden);
    this.#downloadButton.hidden = false;
    this.#renderCount();
  }

  #renderCount(): void {
    const { offset, isNewest } = this.#place;
    const shown = this.#page.rows.length;
    const last = offset + shown;
    const isLastPage = this.#page.nextCursor === undefined;
    // A total that leaves no records for the next page is out of date.
    const total = isLastPage ? last : (this.#total ?? 0) > last ? this.#total : undefined;
    const ofTotal = total === undefined ? 'records' : `of ${formatRecordCount(total)}`;
    if (isNewest && shown === total) this.#count.textContent = formatRecordCount(shown);
    else if (isNewest) this.#count.textContent = `Newest ${formatCount(shown)} ${ofTotal}`;
    else this.#count.textContent = `${formatCount(offset + 1)}–${formatCount(last)} ${ofTotal}`;
  }
}

function createButton(
  label: string,
  classes: string,
  onClick: (event: MouseEvent) => void,
): HTMLButtonElement {
  return h('button', { type: 'button', class: classes, on: { click: onClick } }, label);
}

const BYTE_LIMIT_NOTE =
  'The records are too large for one page: the size of a response is limited. “Older” continues from there.';
const TIME_LIMIT_NOTE =
  'The time limit ended the search before the page was full. “Older” continues from there.';

function createNotes({ clipped }: QueryResult, { retentionNote }: PagePlace): (HTMLElement | undefined)[] {
  const limits = [
    ...(clipped.includes('time-limit') ? [TIME_LIMIT_NOTE] : []),
    ...(clipped.includes('byte-limit') ? [BYTE_LIMIT_NOTE] : []),
  ];
  return [retentionNote, ...limits.map(note => h('p', { class: 'note' }, note))];
}
