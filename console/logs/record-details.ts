// The details of a log record: its message with line breaks, its times, its id and its metadata. In a search, values can be
// added to the search expression, and the record has a link and a view of its surroundings.
import type { Row } from '../api/client.ts';
import { ExactNumber, formatJson } from '../api/exact-json.ts';
import { createCopyButton } from '../components/controls.ts';
import { createJsonTree } from '../components/json-tree.ts';
import { h } from '../dom.ts';
import { formatDateTime, microsToIso } from '../format.ts';
import { createFilterableValue } from './filterable-value.ts';
import { findField, type LogKind } from './kinds.ts';
import { readMessage, readMicros } from './record-fields.ts';
import { type Term, toPhrase, toTerm } from './search-expression.ts';

export interface RecordActions {
  readonly kind: LogKind;
  addTerm(term: Term): void;
  /** Undefined if the token cannot call logs.record. */
  readonly toLink: ((record: Row) => string) | undefined;
  showSurroundings(record: Row): void;
}

export function createRecordDetails(record: Row, actions: RecordActions | undefined): HTMLElement {
  const micros = readMicros(record);
  return h(
    'div',
    { class: 'details' },
    h(
      'div',
      { class: 'details-header' },
      h('p', { class: 'details-message' }, readMessage(record)),
      h('div', { class: 'details-actions' }, ...createButtons(record, actions)),
    ),
    h(
      'dl',
      {},
      h('dt', {}, 'Time'),
      h('dd', {}, formatDateTime(Math.floor(micros / 1000))),
      h('dt', {}, 'UTC'),
      h('dd', { class: 'mono' }, microsToIso(micros)),
      h('dt', {}, 'Id'),
      h('dd', { class: 'mono' }, String(record['id'])),
    ),
    h('h2', {}, 'Metadata'),
    createJsonTree(
      record['metadata'],
      actions === undefined ? undefined : (leaf, path, value) => decorateLeaf(leaf, path, value, actions),
    ),
  );
}

function createButtons(record: Row, actions: RecordActions | undefined): HTMLElement[] {
  const copyJson = createCopyButton('Copy as JSON', () => formatJson(record));
  const toLink = actions?.toLink;
  if (actions === undefined || toLink === undefined) return [copyJson];
  const surroundings = h('button', { type: 'button', class: 'button small' }, 'Surrounding records');
  surroundings.addEventListener('click', () => actions.showSurroundings(record));
  return [copyJson, createCopyButton('Copy link', () => toLink(record)), surroundings];
}

/** Lets the user filter by a value: by its field if the search knows it, otherwise as a phrase. */
function decorateLeaf(
  leaf: HTMLElement,
  path: readonly string[],
  value: unknown,
  { kind, addTerm }: RecordActions,
): HTMLElement {
  const text = value instanceof ExactNumber ? value.digits : String(value ?? '');
  const field = findField(kind, path, text);
  if (value === null || typeof value === 'boolean' || toPhrase(text) === '') return leaf;
  return createFilterableValue(leaf, {
    name: `${field ?? path.at(-1) ?? 'value'} ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`,
    text,
    onFilter: isExcluded => addTerm(toTerm(field, text, isExcluded)),
  });
}
