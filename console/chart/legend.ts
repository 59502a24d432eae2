// A legend that explains itself: colour, name, the figure over the whole window, what it means. Each entry is a switch
// for its series.
import { h, replaceChildren } from '../dom.ts';

export interface LegendEntry {
  readonly key: string;
  readonly label: string;
  readonly color: string;
  readonly value: string;
  readonly meaning: string;
}

export interface Legend {
  readonly element: HTMLElement;
  draw(entries: readonly LegendEntry[]): void;
}

export function makeLegend(hidden: Set<string>, onChange: () => void): Legend {
  const element = h('ul', { class: 'legend', 'aria-label': 'Legend: press an entry to hide or show it' });
  const toggle = (button: HTMLElement, key: string) => {
    if (!hidden.delete(key)) hidden.add(key);
    button.setAttribute('aria-pressed', String(!hidden.has(key)));
    onChange();
  };
  let drawn = '';
  return {
    element,
    draw(entries) {
      const wanted = JSON.stringify(entries);
      if (wanted === drawn) return; // whoever has the focus on an entry keeps it
      drawn = wanted;
      const focused = (document.activeElement as HTMLElement | null)?.dataset['series'];
      replaceChildren(element, ...entries.map(entry => h('li', {}, entryButton(entry, hidden, toggle))));
      if (focused !== undefined)
        element.querySelector<HTMLElement>(`[data-series="${CSS.escape(focused)}"]`)?.focus();
    },
  };
}

function entryButton(
  { key, label, color, value, meaning }: LegendEntry,
  hidden: ReadonlySet<string>,
  toggle: (button: HTMLElement, key: string) => void,
): HTMLElement {
  const button = h(
    'button',
    { type: 'button', class: 'legend-entry', 'aria-pressed': !hidden.has(key) ? 'true' : 'false' },
    h('span', { class: 'legend-name' }, h('i', { class: `swatch ${color}` }), label),
    h('span', { class: 'legend-value' }, value),
    h('span', { class: 'legend-meaning' }, meaning),
  );
  button.dataset['series'] = key;
  button.addEventListener('click', () => toggle(button, key));
  return button;
}
