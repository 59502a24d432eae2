// A text field with a list of suggestions below it. The user can choose one or enter any other text. It reports its value when
// the user chooses a suggestion, presses Enter or leaves the field.
import { createId, h, replaceChildren, setAttribute, setInvalid } from '../dom.ts';
import type { Field } from './controls.ts';

export interface Suggestion {
  readonly value: string;
  /** Shown instead of the value, for a suggestion that replaces only a part of the text: the value is always the whole text. */
  readonly label?: string;
  /** Shown behind the value, such as a count. */
  readonly detail?: string;
  /** Where the caret moves to. The user continues to type there, so the value is not reported yet. */
  readonly caret?: number;
}

export interface SuggestionGroup {
  readonly heading: string;
  readonly suggestions: readonly Suggestion[];
}

export interface ComboboxOptions {
  readonly id: string;
  readonly placeholder: string;
  /** The suggestions for a text; for an empty text, all of them. `input` is the field, which has the position of the caret. */
  readonly suggest: (
    text: string,
    signal: AbortSignal,
    input: HTMLInputElement,
  ) => Promise<readonly SuggestionGroup[]>;
  readonly onCommit: (value: string) => void;
  /** The user submitted the value again, without a change. */
  readonly onResubmit?: () => void;
}

export interface Combobox {
  /** Contains the field and the list, but no label. */
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  setValue(value: string): void;
  setInvalid(isInvalid: boolean): void;
  /** Moves the focus to the field and shows all suggestions. */
  open(): void;
  /** Reports the text of the field if it has changed. */
  commit(): void;
  /** Does what Enter does if no suggestion is selected: commits, or calls `onResubmit` if the text has not changed. */
  submit(): void;
}

/** Suggestions are requested after a pause in typing of this length. */
const TYPING_PAUSE_MS = 150;

export function createCombobox(options: ComboboxOptions): Combobox {
  return new TextWithSuggestions(options);
}

/** A combobox with a label, for a form. */
export function createComboboxField(label: string, options: Omit<ComboboxOptions, 'id'>): Field {
  const id = createId('field');
  const combobox = createCombobox({ ...options, id });
  return {
    element: h(
      'div',
      { class: 'field' },
      h('label', { class: 'field-label', for: id }, label),
      combobox.element,
    ),
    setValue: value => combobox.setValue(value),
    setInvalid: isInvalid => combobox.setInvalid(isInvalid),
  };
}

class TextWithSuggestions implements Combobox {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  readonly #options: ComboboxOptions;
  readonly #list: HTMLElement;
  #committed = '';
  #items: readonly HTMLElement[] = [];
  /** The index of the selected item; -1: none. */
  #activeIndex = -1;
  #request: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ComboboxOptions) {
    this.#options = options;
    const listId = createId('suggestions');
    this.#list = h('div', {
      id: listId,
      class: 'suggestions card',
      role: 'listbox',
      'aria-label': 'Suggestions',
      hidden: true,
    });
    this.input = h('input', {
      id: options.id,
      type: 'text',
      class: 'mono',
      role: 'combobox',
      placeholder: options.placeholder,
      'aria-expanded': 'false',
      'aria-controls': listId,
      'aria-autocomplete': 'list',
      autocomplete: 'off',
      autocapitalize: 'off',
      spellcheck: 'false',
      enterkeyhint: 'go',
      on: {
        input: () => this.#openSoon(),
        click: () => void this.#open(''),
        keydown: event => this.#onKey(event),
        change: () => this.commit(),
        blur: () => this.#close(),
      },
    });
    this.element = h('div', { class: 'combobox' }, this.input, this.#list);
  }

  setValue(value: string): void {
    this.#committed = value;
    if (this.input.value.trim() !== value) this.input.value = value;
  }

  setInvalid(isInvalid: boolean): void {
    setInvalid(this.input, isInvalid);
  }

  open(): void {
    this.input.focus();
    void this.#open('');
  }

  commit(): void {
    const value = this.input.value.trim();
    this.#close();
    if (value === this.#committed) return;
    this.#committed = value;
    this.#options.onCommit(value);
  }

  submit(): void {
    const isUnchanged = this.input.value.trim() === this.#committed;
    this.commit();
    if (isUnchanged) this.#options.onResubmit?.();
  }

  #openSoon(): void {
    this.#cancel();
    this.#timer = setTimeout(() => void this.#open(this.input.value.trim()), TYPING_PAUSE_MS);
  }

  async #open(text: string): Promise<void> {
    this.#cancel();
    const request = new AbortController();
    this.#request = request;
    const groups = await this.#options.suggest(text, request.signal, this.input);
    if (request.signal.aborted || document.activeElement !== this.input) return;
    const items: HTMLElement[] = [];
    const sections = groups
      .filter(({ suggestions }) => suggestions.length > 0)
      .map(({ heading, suggestions }) => {
        const groupItems = suggestions.map(suggestion => this.#createItem(suggestion));
        items.push(...groupItems);
        return h(
          'div',
          { role: 'group', 'aria-label': heading },
          h('div', { class: 'suggestions-heading', 'aria-hidden': 'true' }, heading),
          ...groupItems,
        );
      });
    replaceChildren(this.#list, ...sections);
    this.#items = items;
    this.#setActive(-1);
    this.#setOpen(items.length > 0);
  }

  #createItem(suggestion: Suggestion): HTMLElement {
    const { value, label = value, detail } = suggestion;
    const item = h(
      'div',
      { id: createId('suggestion'), class: 'suggestion', role: 'option', 'aria-selected': 'false' },
      h('span', { class: 'mono' }, label),
      detail === undefined ? undefined : h('small', {}, detail),
    );
    item.addEventListener('mousedown', event => event.preventDefault()); // keeps the focus in the field
    item.addEventListener('click', () => this.#choose(suggestion));
    return item;
  }

  #choose({ value, caret }: Suggestion): void {
    this.input.value = value;
    if (caret === undefined) this.commit();
    else {
      this.input.setSelectionRange(caret, caret);
      this.#openSoon();
    }
  }

  #onKey(event: KeyboardEvent): void {
    const isOpen = !this.#list.hidden;
    const active = this.#items[this.#activeIndex];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const count = this.#items.length;
      const step = event.key === 'ArrowDown' ? 1 : -1;
      // If no item is selected, ArrowUp selects the last one.
      const from = step === -1 ? Math.max(this.#activeIndex, 0) : this.#activeIndex;
      if (!isOpen) void this.#open('');
      else this.#setActive((from + step + count) % count);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (isOpen && active !== undefined) active.click();
      else this.submit();
    } else if (event.key === 'Escape' && isOpen) {
      event.preventDefault();
      this.#close();
    }
  }

  #setActive(index: number): void {
    this.#activeIndex = index;
    for (const [i, item] of this.#items.entries()) item.setAttribute('aria-selected', String(i === index));
    const active = this.#items[index];
    setAttribute(this.input, 'aria-activedescendant', active?.id);
    active?.scrollIntoView({ block: 'nearest' });
  }

  #setOpen(isOpen: boolean): void {
    this.#list.hidden = !isOpen;
    this.input.setAttribute('aria-expanded', String(isOpen));
  }

  #close(): void {
    this.#cancel();
    this.#setActive(-1);
    this.#setOpen(false);
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }
}
