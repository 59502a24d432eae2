// The overlay that lists the keyboard shortcuts.
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
  ['↑ ↓', 'Move from record to record'],
  ['Enter', 'Open or close a record'],
  ['Esc', 'Close a record'],
];

export function openHelpDialog(shortcuts: readonly Shortcut[]): void {
  const close = h('button', { type: 'button', class: 'button' }, 'Close');
  const dialog = h(
    'dialog',
    { class: 'card help', 'aria-labelledby': 'help-title' },
    h('div', { class: 'help-header' }, h('h2', { id: 'help-title' }, 'Keyboard shortcuts'), close),
    createSection(
      'Anywhere',
      shortcuts.map(({ key, description }) => [key, description]),
    ),
    createSection('In a chart', CHART_KEYS),
    createSection('In a list of log records', LOG_KEYS),
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

function createSection(title: string, entries: readonly Entry[]): HTMLElement {
  const rows = entries.flatMap(([keys, description]) => [
    h('dt', {}, ...keys.split(' ').map(key => h('kbd', {}, key))),
    h('dd', {}, description),
  ]);
  return h('section', {}, h('h3', {}, title), h('dl', {}, ...rows));
}
