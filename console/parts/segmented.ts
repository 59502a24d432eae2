// A choice among few, all of them visible: radio buttons that look like one control.
import { h, newId } from '../dom.ts';

export interface Option {
  readonly value: string;
  readonly label: string;
  /** In full, for whoever hovers or listens. */
  readonly title?: string;
}

export interface Segmented {
  readonly element: HTMLElement;
  set(value: string): void;
}

export function makeSegmented(
  label: string,
  options: readonly Option[],
  onChoose: (value: string) => void,
): Segmented {
  const name = newId('choice');
  const inputs = new Map<string, HTMLInputElement>();
  const segments = options.map(option => {
    const input = h('input', { type: 'radio', name, value: option.value, 'aria-label': option.title });
    input.addEventListener('change', () => onChoose(option.value));
    inputs.set(option.value, input);
    return h('label', { class: 'segment', title: option.title }, input, h('span', {}, option.label));
  });
  return {
    element: h(
      'fieldset',
      { class: 'field' },
      h('legend', { class: 'field-label' }, label),
      h('div', { class: 'segments' }, ...segments),
    ),
    set(value) {
      for (const [key, input] of inputs) input.checked = key === value;
    },
  };
}
