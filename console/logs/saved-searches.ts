// The searches that the user has saved in this browser, and the expressions that were used last.
import { createCopyButton } from '../components/controls.ts';
import { h, isPlainClick, replaceChildren } from '../dom.ts';
import type { UrlState } from '../url-state.ts';

type Settings = UrlState['settings'];

interface SavedSearch {
  readonly name: string;
  readonly settings: Settings;
}

const SAVED_KEY = 'dendro.searches';
const RECENT_KEY = 'dendro.recent-searches';
const MAX_RECENT = 8;

export const readRecentSearches = (): readonly string[] =>
  readList(RECENT_KEY).filter(each => typeof each === 'string');

export function saveRecentSearch(expression: string): void {
  if (expression === '') return;
  const others = readRecentSearches().filter(other => other !== expression);
  localStorage.setItem(RECENT_KEY, JSON.stringify([expression, ...others].slice(0, MAX_RECENT)));
}

export interface SavedSearchesOptions {
  /** The settings of the current search that are saved: all but the time range and the page. */
  getSettings(): Settings;
  /** The link to a saved search, with the project and the time range of the page. */
  toLink(settings: Settings): string;
  open(settings: Settings): void;
}

export function createSavedSearches({ getSettings, toLink, open }: SavedSearchesOptions): HTMLElement {
  const list = h('ul', { class: 'saved-list' });
  const name = h('input', {
    type: 'text',
    placeholder: 'Name of this search',
    'aria-label': 'Name of this search',
  });
  const element = h('details', { class: 'menu' });
  const save = (searches: readonly SavedSearch[]) => {
    localStorage.setItem(SAVED_KEY, JSON.stringify(searches));
    render();
  };
  const render = () => {
    const searches = readSaved();
    const items = searches.map(search => {
      const link = h('a', { href: toLink(search.settings) }, search.name);
      link.addEventListener('click', event => {
        if (!isPlainClick(event)) return;
        event.preventDefault();
        element.open = false;
        open(search.settings);
      });
      const copy = createCopyButton('Copy link', () => new URL(toLink(search.settings), location.href).href);
      const remove = h(
        'button',
        { type: 'button', class: 'button small', 'aria-label': `Remove ${search.name}` },
        '×',
      );
      remove.addEventListener('click', () => save(readSaved().filter(other => other.name !== search.name)));
      return h('li', {}, link, copy, remove);
    });
    replaceChildren(list, ...(items.length === 0 ? [h('li', { class: 'muted' }, 'None yet')] : items));
  };
  const form = h(
    'form',
    { class: 'saved-form' },
    name,
    h('button', { type: 'submit', class: 'button small' }, 'Save'),
  );
  form.addEventListener('submit', event => {
    event.preventDefault();
    const text = name.value.trim();
    if (text === '') return;
    name.value = '';
    save([...readSaved().filter(other => other.name !== text), { name: text, settings: getSettings() }]);
  });
  element.append(
    h('summary', { class: 'button' }, 'Saved'),
    h('div', { class: 'card menu-body' }, form, list),
  );
  element.addEventListener('toggle', render);
  element.addEventListener('keydown', event => {
    if (event.key !== 'Escape') return;
    element.open = false;
    element.querySelector('summary')?.focus();
  });
  return element;
}

function readSaved(): SavedSearch[] {
  return readList(SAVED_KEY).filter(
    (each): each is SavedSearch =>
      typeof (each as SavedSearch | null)?.name === 'string' &&
      typeof (each as SavedSearch).settings === 'object',
  );
}

function readList(key: string): unknown[] {
  try {
    const saved: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(saved) ? saved : [];
  } catch {
    return [];
  }
}
