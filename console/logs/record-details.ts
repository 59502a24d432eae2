// The details of a log record: its message with line breaks, its times, its id and its metadata. In a search, values can be
// added to the search expression, and the record has a link and a view of its surroundings.
import { ApiError, type Row } from '../api/client.ts';
import { ExactNumber, formatJson } from '../api/exact-json.ts';
import { createCopyButton } from '../components/controls.ts';
import { createJsonTree } from '../components/json-tree.ts';
import { h } from '../dom.ts';
import { formatDateTime, microsToIso } from '../format.ts';
import { createFilterableValue } from './filterable-value.ts';
import { readKind } from './kinds.ts';
import { findField, findRequestIds, readMessage, readMicros } from './record-fields.ts';
import { type Term, toPhrase, toTerm } from './search-expression.ts';

export interface RecordActions {
  addTerm(term: Term): void;
  /** Searches all log kinds for an id, around the time of the record. */
  searchId(id: string, record: Row): void;
  /** The links and the surroundings of a record; undefined if the token cannot call logs.record. */
  readonly page: RecordPage | undefined;
}

export interface RecordPage {
  toLink(record: Row): string;
  toCurl(record: Row): string;
  /** A list of the record and its neighbours of all kinds. */
  loadSurroundings(record: Row): Promise<HTMLElement>;
  /** Shows the record between its neighbours, instead of the search. */
  open(record: Row): void;
}

export function createRecordDetails(record: Row, actions: RecordActions | undefined): HTMLElement {
  const tabs = createTabs(record, actions);
  const body = h('div', { class: 'details-body' }, createFields(record, actions));
  const buttons = tabs.map(({ label, create }) => {
    const button = h('button', { type: 'button', class: 'details-tab' }, label);
    button.addEventListener('click', async () => {
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      const content = await create();
      if (button.getAttribute('aria-pressed') === 'true') body.replaceChildren(content);
    });
    return button;
  });
  for (const [i, button] of buttons.entries()) button.setAttribute('aria-pressed', String(i === 0));
  return h(
    'div',
    { class: 'details' },
    h('p', { class: 'details-message' }, readMessage(record)),
    h(
      'div',
      { class: 'details-header' },
      h('div', { class: 'details-tabs', role: 'group', 'aria-label': 'Record' }, ...buttons),
      h('div', { class: 'details-actions' }, ...createButtons(record, actions)),
    ),
    body,
  );
}

interface Tab {
  readonly label: string;
  create(): HTMLElement | Promise<HTMLElement>;
}

function createTabs(record: Row, actions: RecordActions | undefined): Tab[] {
  const page = actions?.page;
  return [
    { label: 'Fields', create: () => createFields(record, actions) },
    { label: 'JSON', create: () => h('pre', { class: 'details-json', tabindex: 0 }, formatJson(record)) },
    ...(page === undefined
      ? []
      : [{ label: 'Surrounding records', create: () => loadSurroundings(record, page) }]),
  ];
}

async function loadSurroundings(record: Row, page: RecordPage): Promise<HTMLElement> {
  try {
    const list = await page.loadSurroundings(record);
    const open = createButton('Open as a page', undefined, () => page.open(record));
    return h('div', { class: 'surroundings' }, list, open);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return h('p', { role: 'alert' }, error.message);
  }
}

function createFields(record: Row, actions: RecordActions | undefined): HTMLElement {
  const micros = readMicros(record);
  return h(
    'div',
    { class: 'details-fields' },
    h(
      'dl',
      {},
      h('dt', {}, 'Time'),
      h('dd', {}, formatDateTime(Math.floor(micros / 1000))),
      h('dt', {}, 'UTC'),
      h('dd', { class: 'mono' }, microsToIso(micros)),
      ...(record['kind'] === undefined ? [] : [h('dt', {}, 'Log'), h('dd', {}, readKind(record).title)]),
      h('dt', {}, 'Id'),
      h('dd', { class: 'mono' }, String(record['id'])),
    ),
    h('h2', {}, 'Metadata'),
    createJsonTree(
      record['metadata'],
      actions === undefined
        ? undefined
        : (leaf, path, value) => decorateLeaf(leaf, record, path, value, actions),
    ),
  );
}

/** A record of many requests, such as a batch, can have many ids. */
const MAX_ID_BUTTONS = 3;

const createButton = (label: string, title: string | undefined, click: () => void) =>
  h('button', { type: 'button', class: 'button small', title, on: { click } }, label);

function createButtons(record: Row, actions: RecordActions | undefined): HTMLElement[] {
  const copyJson = createCopyButton('Copy as JSON', () => formatJson(record));
  if (actions === undefined) return [copyJson];
  const { page, searchId } = actions;
  const ids = findRequestIds(record['metadata']);
  return [
    ...[...ids]
      .slice(0, MAX_ID_BUTTONS)
      .map(([id, key]) =>
        createButton(
          ids.size === 1 ? 'Same request' : `Same ${key}`,
          `All logs with ${key} ${id}, one hour before and after`,
          () => searchId(id, record),
        ),
      ),
    copyJson,
    ...(page === undefined
      ? []
      : [
          createCopyButton('Copy as curl', () => page.toCurl(record)),
          createCopyButton('Copy link', () => page.toLink(record)),
        ]),
  ];
}

/** Lets the user filter by a value: by its field if the search can name it, otherwise as a phrase. */
function decorateLeaf(
  leaf: HTMLElement,
  record: Row,
  path: readonly string[],
  value: unknown,
  { addTerm }: RecordActions,
): HTMLElement {
  const text = value instanceof ExactNumber ? value.digits : String(value ?? '');
  const field = findField(readKind(record).fields, record['metadata'], path, text);
  if (toPhrase(text) === '' || (typeof value === 'boolean' && field === undefined)) return leaf;
  const lastKey = field?.includes('"') ? undefined : field?.split('.').at(-1);
  const name = lastKey ?? path.at(-1) ?? 'value';
  return createFilterableValue(leaf, {
    name: `${name} ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`,
    text,
    onFilter: isExcluded => addTerm(toTerm(field, text, isExcluded)),
  });
}
