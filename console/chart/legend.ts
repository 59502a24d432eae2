// The legend of a chart. Each entry shows one number that summarizes its series, and hides or shows the series.
import { h, replaceChildren } from '../dom.ts';

export interface LegendEntry {
  readonly key: string;
  readonly label: string;
  readonly color: string;
  readonly value: string;
  readonly description: string;
}

export interface Legend {
  readonly element: HTMLElement;
  render(entries: readonly LegendEntry[]): void;
}

/** `hidden` contains the keys of the hidden series. The legend updates it. */
export function createLegend(hidden: Set<string>, onToggle: () => void): Legend {
  const element = h('ul', {
    class: 'legend',
    'aria-label': 'Legend: press an entry to hide or show its series',
  });
  const toggle = (button: HTMLElement, key: string) => {
    if (!hidden.delete(key)) hidden.add(key);
    button.setAttribute('aria-pressed', String(!hidden.has(key)));
    onToggle();
  };
  let rendered = '';
  return {
    element,
    render(entries) {
      const next = JSON.stringify(entries);
      if (next === rendered) return;
      rendered = next;
      const focused = (document.activeElement as HTMLElement | null)?.dataset['series'];
      replaceChildren(element, ...entries.map(entry => h('li', {}, createEntry(entry, hidden, toggle))));
      // The focused button was replaced by a new one.
      if (focused !== undefined)
        element.querySelector<HTMLElement>(`[data-series="${CSS.escape(focused)}"]`)?.focus();
    },
  };
}

function createEntry(
  { key, label, color, value, description }: LegendEntry,
  hidden: ReadonlySet<string>,
  toggle: (button: HTMLElement, key: string) => void,
): HTMLElement {
  const button = h(
    'button',
    { type: 'button', class: 'legend-entry', 'aria-pressed': String(!hidden.has(key)) },
    h('span', { class: 'legend-name' }, h('i', { class: `swatch ${color}` }), label),
    h('span', { class: 'legend-value' }, value),
    h('span', { class: 'legend-description' }, description),
  );
  button.dataset['series'] = key;
  button.addEventListener('click', () => toggle(button, key));
  return button;
}
