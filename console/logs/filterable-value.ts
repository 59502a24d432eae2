// A value of a record that the user can click, to include it in the search, exclude it, or copy it.
import { copyText } from '../components/controls.ts';
import { h } from '../dom.ts';

export interface FilterableValue {
  /** Such as `status 503`, for the names of the buttons. */
  readonly name: string;
  readonly text: string;
  onFilter(isExcluded: boolean): void;
}

/** Wraps the element that shows the value. The buttons appear after it while it is expanded. */
export function createFilterableValue(content: HTMLElement, value: FilterableValue): HTMLElement {
  const actions = h('span', { class: 'value-actions', role: 'group', hidden: true });
  // A span, because a long value in a button cannot wrap within its line, and its text cannot be selected.
  const toggle = h(
    'span',
    {
      class: 'value',
      role: 'button',
      tabindex: 0,
      title: 'Include, exclude or copy this value',
      'aria-expanded': 'false',
    },
    content,
  );
  const setExpanded = (isExpanded: boolean) => {
    if (isExpanded && actions.childElementCount === 0) actions.append(...createActions(value));
    actions.hidden = !isExpanded;
    toggle.setAttribute('aria-expanded', String(isExpanded));
  };
  toggle.addEventListener('click', () => {
    if (getSelection()?.isCollapsed !== false) setExpanded(actions.hidden === true); // not after a text selection
  });
  toggle.addEventListener('keydown', event => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    setExpanded(actions.hidden === true);
  });
  const element = h('span', { class: 'filterable' }, toggle, actions);
  element.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || actions.hidden) return;
    event.stopPropagation(); // the row stays open
    setExpanded(false);
    toggle.focus();
  });
  return element;
}

function createActions({ name, text, onFilter }: FilterableValue): HTMLElement[] {
  const create = (label: string, onClick: (button: HTMLElement) => void) => {
    const button = h(
      'button',
      { type: 'button', class: 'button tiny', 'aria-label': `${label} ${name}` },
      label,
    );
    button.addEventListener('click', () => onClick(button));
    return button;
  };
  return [
    create('Include', () => onFilter(false)),
    create('Exclude', () => onFilter(true)),
    create('Copy', async button => {
      button.textContent = (await copyText(text, button)) ? 'Copied' : 'Copy failed';
    }),
  ];
}
