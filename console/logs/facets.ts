// The facets beside the list: the most frequent values of each field, with their counts and shares of errors, from logs.top. A click
// adds a value to the search expression or removes it; a click with Alt excludes it.
import { ApiError, type Row, runQuery } from '../api/client.ts';
import { createComboboxField } from '../components/combobox.ts';
import { createId, h, replaceChildren } from '../dom.ts';
import { formatCompact, formatCount, formatPercent } from '../format.ts';
import type { UrlState } from '../url-state.ts';
import { ALL_KINDS, findKind } from './kinds.ts';
import { findTerm, type Term, toTerm, withoutField } from './search-expression.ts';
import { toFilterKey, toFilters } from './search-state.ts';

export interface FacetsOptions {
  /** Includes or excludes a value; if the expression has this term already, removes it. */
  onToggle(term: Term): void;
  onKind(kind: string): void;
  /** The fields that the user has added. */
  onFields(fields: readonly string[]): void;
  /** The paths in the metadata of the loaded records. */
  listPaths(): readonly string[];
}

/** These many facets are open at first: each open facet is a query. */
const OPEN_FACETS = 3;
const SHOWN_VALUES = 6;
const MAX_AGE_MS = 30_000;
/** Below this width, the facets would leave no room for the list. */
const WIDE = matchMedia('(min-width: 1000px)');

export class Facets {
  readonly element: HTMLElement;
  readonly #options: FacetsOptions;
  readonly #list = h('div', { class: 'facet-list' });
  readonly #panel: HTMLDetailsElement;
  #facets: readonly Facet[] = [];
  #state: UrlState | undefined;
  #key = '';
  #loadedAt = 0;
  #request: AbortController | undefined;

  constructor(options: FacetsOptions) {
    this.#options = options;
    const addField = createComboboxField('Add a field', {
      placeholder: 'request.headers.cf_ray',
      suggest: async text => [
        {
          heading: 'Metadata of the loaded records',
          suggestions: options
            .listPaths()
            .filter(path => path.includes(text) && !path.includes(',')) // a comma separates the fields in the link
            .map(value => ({ value })),
        },
      ],
      onCommit: field => {
        addField.setValue('');
        if (field !== '') options.onFields([...this.#added, field]);
      },
    });
    this.#panel = h(
      'details',
      { class: 'facets', open: WIDE.matches },
      h('summary', {}, 'Facets'),
      this.#list,
      addField.element,
    );
    onUserToggle(this.#panel, () => void this.#load());
    this.element = h('aside', { 'aria-label': 'Facets' }, this.#panel);
  }

  hide(): void {
    this.#request?.abort();
    this.#state = undefined;
    this.element.hidden = true;
  }

  /** Loads the open facets if they belong to another search or are older than 30 s, or the user asked for a refresh. */
  show(state: UrlState, fields: readonly string[], forceRefresh: boolean): void {
    const { kind = '', facets = '' } = state.settings;
    const { kind: oldKind, facets: oldFacets = '' } = this.#state?.settings ?? {};
    const isOtherKind = kind !== oldKind || facets !== oldFacets;
    this.#state = state;
    this.element.hidden = false;
    if (isOtherKind) this.#create(fields);
    const key = toFilterKey(state);
    const isCurrent = key === this.#key && Date.now() - this.#loadedAt <= MAX_AGE_MS;
    if (isCurrent && !forceRefresh && !isOtherKind) return;
    this.#key = key;
    this.#loadedAt = Date.now();
    for (const facet of this.#facets) facet.isLoaded = false;
    void this.#load();
  }

  focus(): void {
    if (!this.#panel.open) {
      this.#panel.open = true;
      void this.#load();
    }
    this.#list.querySelector<HTMLElement>('summary, button')?.focus();
  }

  get #added(): readonly string[] {
    return (this.#state?.settings['facets'] ?? '').split(',').filter(name => name !== '');
  }

  #create(fields: readonly string[]): void {
    const added = this.#added;
    const names = [...new Set(['kind', ...fields, ...added])];
    const previous = new Map(this.#facets.map(facet => [facet.field, facet.element.open]));
    this.#facets = names.map((field, i) => {
      const isAdded = added.includes(field);
      const isOpen = previous.get(field) ?? (isAdded || i < OPEN_FACETS);
      const onRemove = () => this.#options.onFields(added.filter(name => name !== field));
      return createFacet(field, isOpen, () => void this.#load(), isAdded ? onRemove : undefined);
    });
    replaceChildren(this.#list, ...this.#facets.map(({ element }) => element));
  }

  /** One facet after the other, so that they do not take the place of other queries. */
  async #load(): Promise<void> {
    this.#request?.abort();
    const request = new AbortController();
    this.#request = request;
    const state = this.#state;
    if (state === undefined || !this.#panel.open) return;
    for (const facet of this.#facets) {
      if (facet.isLoaded || !facet.element.open) continue;
      const { field } = facet;
      const { kind: _, ...filters } = toFilters(state);
      const kind = field === 'kind' ? ALL_KINDS : (state.settings['kind'] ?? '');
      const query = withoutField(state.settings['query'] ?? '', field);
      try {
        const parameters = { ...filters, kind, field, query };
        const { rows } = await runQuery('logs.top', parameters, { signal: request.signal });
        this.#render(facet, rows, state);
      } catch (error) {
        if (request.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        replaceChildren(facet.body, h('p', { class: 'facet-note' }, error.message));
      }
      facet.isLoaded = true;
    }
  }

  #render({ field, body }: Facet, rows: readonly Row[], { settings }: UrlState): void {
    const { query = '', kind = '' } = settings;
    const max = rows.reduce((largest, row) => Math.max(largest, Number(row['count'])), 1);
    const isKindSwitch = field === 'kind' && kind !== ALL_KINDS;
    const items = rows.map((row, i) => {
      const text = String(row['value']);
      const value = toFacetValue(row, field, max);
      const [included, excluded] = [false, true].map(isExcluded => toTerm(field, text, isExcluded));
      const toggle = (isExcluded: boolean) => {
        if (isKindSwitch) this.#options.onKind(text === kind ? ALL_KINDS : text);
        else this.#options.onToggle(toTerm(field, text, isExcluded));
      };
      const item = createValue(value, toggle, {
        isIncluded: isKindSwitch
          ? text === kind
          : included !== undefined && findTerm(query, included) !== undefined,
        isExcluded: excluded !== undefined && findTerm(query, excluded) !== undefined,
        canExclude: !isKindSwitch,
      });
      item.hidden = i >= SHOWN_VALUES;
      return item;
    });
    const rest = items.slice(SHOWN_VALUES);
    const more = h(
      'button',
      { type: 'button', class: 'facet-more' },
      `Show ${formatCount(rest.length)} more`,
    );
    more.addEventListener('click', () => {
      for (const item of rest) item.hidden = false;
      more.remove();
      rest[0]?.querySelector('button')?.focus();
    });
    replaceChildren(
      body,
      rows.length === 0 ? h('p', { class: 'facet-note' }, 'No values') : h('ul', {}, ...items),
      rest.length === 0 ? undefined : more,
    );
  }
}

/** The event `toggle` also fires for an element that is created open. */
function onUserToggle(element: HTMLDetailsElement, onToggle: () => void): void {
  element.querySelector('summary')?.addEventListener('click', () => setTimeout(onToggle));
}

interface Facet {
  readonly field: string;
  readonly element: HTMLDetailsElement;
  readonly body: HTMLElement;
  isLoaded: boolean;
}

function createFacet(
  field: string,
  isOpen: boolean,
  onOpen: () => void,
  onRemove: (() => void) | undefined,
): Facet {
  const body = h('div', { class: 'facet-body' });
  const id = createId('facet');
  const element = h(
    'details',
    { class: 'facet', open: isOpen },
    h('summary', { id }, field),
    onRemove &&
      h('button', { type: 'button', class: 'facet-more', on: { click: onRemove } }, 'Remove this facet'),
    body,
  );
  onUserToggle(element, onOpen);
  return { field, element, body, isLoaded: false };
}

interface FacetValue {
  /** Such as `status 503`, for the names of the buttons. */
  readonly name: string;
  readonly text: string;
  readonly count: number;
  readonly errorShare: number;
  /** The length of the bar, from 0 to 1. */
  readonly length: number;
}

function toFacetValue(row: Row, field: string, max: number): FacetValue {
  const value = String(row['value']);
  const text = field === 'kind' ? findKind(value).title : value;
  const count = Number(row['count']);
  return {
    name: `${field} ${text}`,
    text,
    count,
    errorShare: Number(row['error_share']),
    length: count / max,
  };
}

function createValue(
  { name, text, count, errorShare, length }: FacetValue,
  toggle: (isExcluded: boolean) => void,
  on: { readonly isIncluded: boolean; readonly isExcluded: boolean; readonly canExclude: boolean },
): HTMLElement {
  const bar = h('i', { class: 'facet-bar' }, h('i', {}));
  bar.style.width = `${length * 100}%`;
  (bar.firstElementChild as HTMLElement).style.width = `${errorShare * 100}%`;
  const include = h(
    'button',
    {
      type: 'button',
      class: 'facet-value',
      'aria-pressed': String(on.isIncluded),
      title: `${text}\n${formatCount(count)} records, ${formatPercent(errorShare)} of them errors${on.canExclude ? '\nAlt-click excludes' : ''}`,
    },
    h('span', { class: 'facet-text' }, text),
    errorShare === 0 ? undefined : h('span', { class: 'facet-errors' }, formatPercent(errorShare)),
    h('span', { class: 'facet-count' }, formatCompact(count)),
    bar,
  );
  include.addEventListener('click', event => toggle(event.altKey && on.canExclude));
  include.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || !event.altKey || !on.canExclude) return;
    event.preventDefault();
    toggle(true);
  });
  const exclude = h(
    'button',
    {
      type: 'button',
      class: 'facet-exclude',
      'aria-label': `Exclude ${name}`,
      'aria-pressed': String(on.isExcluded),
    },
    '−',
  );
  exclude.addEventListener('click', () => toggle(true));
  return h(
    'li',
    { class: on.isExcluded ? 'excluded' : undefined },
    include,
    on.canExclude ? exclude : undefined,
  );
}
