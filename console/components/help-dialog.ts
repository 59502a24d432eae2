// The overlay that lists the keyboard shortcuts, and examples of search expressions.
import { h } from '../dom.ts';
import type { Shortcut } from '../shortcuts.ts';

type Entry = readonly [keys: string, description: string];

const CHART_KEYS: readonly Entry[] = [
  ['← →', 'Move from bucket to bucket'],
  ['Shift ← →', 'Select a range'],
  ['Enter', 'Zoom to the selection, or open the logs of the bucket'],
  ['Esc', 'Hide the values'],
];

const LOG_KEYS: readonly Entry[] = [
  ['↑ ↓', 'Move from record to record; also j and k'],
  ['Enter', 'Open or close a record'],
  ['Esc', 'Close a record'],
];

const SEARCHES: readonly Entry[] = [
  ['timeout', 'The message or the metadata contains the word'],
  ['"connection reset"', 'Contains the phrase; in quotes, everything is text'],
  ['a b', 'Contains both'],
  ['a OR b', 'Contains one of them'],
  ['a (b OR c)', 'Contains the first, and one of the others'],
  ['-a -status:404', 'Does not match what follows the -'],
  ['status:5xx', 'A status code, or a class of them'],
  ['status:>=500', 'Greater than or equal to a number; also > < <='],
  ['status:500..599', 'In a range of numbers'],
  ['path:/rest/v1*', 'The whole value of a field; * is any text'],
  ['request.headers.cf_ray:8f3*', 'A value of the metadata, by its keys'],
  ['metadata.request_id:af31', 'A key at the top of the metadata'],
  ['exists:parsed.detail', 'Has the field'],
];

export function openHelpDialog(shortcuts: readonly Shortcut[]): void {
  const close = h('button', { type: 'button', class: 'button' }, 'Close');
  const dialog = h(
    'dialog',
    { class: 'card help', 'aria-labelledby': 'help-title' },
    h('div', { class: 'help-header' }, h('h2', { id: 'help-title' }, 'Keyboard shortcuts and search'), close),
    createSection(
      'Anywhere',
      shortcuts.map(({ key, description }) => [key, description]),
    ),
    createSection('In a chart', CHART_KEYS),
    createSection('In a list of log records', LOG_KEYS),
    createSection('Search expressions', SEARCHES, code => [h('code', {}, code)]),
  );
  close.addEventListener('click', () => dialog.close());
  // A click on the backdrop has the dialog itself as its target.
  dialog.addEventListener('click', event => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const createKeys = (keys: string): HTMLElement[] => keys.split(' ').map(key => h('kbd', {}, key));

function createSection(
  title: string,
  entries: readonly Entry[],
  createTerm: (text: string) => HTMLElement[] = createKeys,
): HTMLElement {
  const rows = entries.flatMap(([text, description]) => [
    h('dt', {}, ...createTerm(text)),
    h('dd', {}, description),
  ]);
  return h('section', {}, h('h3', {}, title), h('dl', {}, ...rows));
}
