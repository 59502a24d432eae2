// The search box of the logs view: a text field with suggestions, and the error of the server with its position.
import { createCombobox, type SuggestionGroup } from '../components/combobox.ts';
import { createId, h, replaceChildren } from '../dom.ts';
import { readRecentSearches, saveRecentSearch } from './saved-searches.ts';
import { type SuggestionSource, suggest } from './suggestions.ts';

export interface SearchBox {
  readonly element: HTMLElement;
  focus(): void;
  setValue(expression: string): void;
  setSource(source: SuggestionSource): void;
  /** Shows why the server rejected the expression; empty: it is valid. */
  showError(message: string): void;
}

/** `menu` is shown beside the box. */
export function createSearchBox(
  onCommit: (expression: string) => void,
  onResubmit: () => void,
  menu: HTMLElement,
): SearchBox {
  const id = createId('search');
  const error = h('div', { id: `${id}-error`, class: 'search-error', role: 'alert', hidden: true });
  let source: SuggestionSource = { fields: [], listPaths: () => [], parameters: undefined };
  let expression = '';
  const field = createCombobox({
    id,
    placeholder: 'timeout (pool OR client) -healthcheck status:>=500 path:/rest*',
    suggest: (_text, signal, { value, selectionStart }) =>
      suggestWithRecent(value, selectionStart ?? value.length, source, signal),
    onCommit(committed) {
      expression = committed;
      saveRecentSearch(committed);
      onCommit(committed);
    },
    onResubmit,
  });
  field.input.type = 'search';
  field.input.enterKeyHint = 'search';
  // The browser's clear button and Escape empty the field. Then it fires `search`.
  field.input.addEventListener('search', () => {
    if (field.input.value === '') field.commit();
  });
  field.input.addEventListener('keydown', event => {
    const hasClosedSuggestions = event.defaultPrevented; // the combobox prevents the default of such an Escape
    if (event.key === 'Escape' && !hasClosedSuggestions && field.input.value === '') field.input.blur();
  });
  field.input.setAttribute('aria-describedby', `${id}-error`);
  field.input.title = 'Finds all the words, in message or metadata. Press ? outside the box for examples.';
  const button = h('button', {
    type: 'button',
    class: 'button primary',
    on: {
      mousedown: event => event.preventDefault(), // the field would report its value when it loses the focus, and again on the click
      click: () => field.submit(),
    },
  });
  button.append('Search');
  return {
    element: h(
      'div',
      { class: 'search-box' },
      h('label', { class: 'visually-hidden', for: id }, 'Search'),
      h('div', { class: 'search-row' }, field.element, button, menu),
      error,
    ),
    focus: () => field.input.focus(),
    setValue(value) {
      expression = value;
      field.setValue(value);
    },
    setSource(next) {
      source = next;
    },
    showError(message) {
      error.hidden = message === '';
      field.setInvalid(message !== '');
      replaceChildren(error, ...(message === '' ? [] : describeError(message, expression)));
    },
  };
}

/** An empty box also suggests the expressions that were used last. */
async function suggestWithRecent(
  ...[expression, caret, source, signal]: Parameters<typeof suggest>
): Promise<SuggestionGroup[]> {
  const groups = await suggest(expression, caret, source, signal);
  const recent = expression === '' ? readRecentSearches().map(value => ({ value })) : [];
  return [...groups, { heading: 'Recent searches', suggestions: recent }];
}

/** Repeats the expression and marks the character that the message names. */
function describeError(message: string, expression: string): HTMLElement[] {
  const position = Number(/at character (\d+)/.exec(message)?.[1] ?? Number.NaN);
  const text = h('p', {}, message);
  const characters = [...expression];
  if (!(position >= 1 && position <= characters.length + 1)) return [text];
  const before = characters.slice(0, position - 1).join('');
  const after = characters.slice(position).join('');
  const marked = characters[position - 1] ?? ' '; // the error is at the end
  return [text, h('code', { class: 'search-error-position' }, before, h('mark', {}, marked), after)];
}
