// A labelled field whose value counts when it is committed: by Enter, or by leaving it. It can say what is wrong with it.
import { h, newId, setAttribute } from '../dom.ts';

export interface Field {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement | HTMLSelectElement;
  set(value: string): void;
  setFault(isAtFault: boolean): void;
}

export interface FieldOptions {
  readonly type?: 'text' | 'datetime-local';
  readonly placeholder?: string;
  readonly hint?: string;
  readonly required?: boolean;
  readonly wide?: boolean;
  readonly mono?: boolean;
}

export function makeTextField(
  label: string,
  options: FieldOptions,
  onCommit: (value: string) => void,
): Field {
  const id = newId('field');
  const input = h('input', {
    id,
    type: options.type ?? 'text',
    step: options.type === 'datetime-local' ? 1 : undefined,
    placeholder: options.placeholder,
    required: options.required,
    class: options.mono ? 'mono' : undefined,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-describedby': options.hint === undefined ? undefined : `${id}-hint`,
  });
  let committed = '';
  const commit = () => {
    if (input.value === committed) return;
    committed = input.value;
    onCommit(input.value);
  };
  // A date field tells of a change at every digit.
  input.addEventListener(options.type === 'datetime-local' ? 'blur' : 'change', commit);
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter') commit();
  });
  return frame(label, options, input, value => {
    committed = value;
    if (input.value !== value) input.value = value;
  });
}

export function makeSelect(
  label: string,
  choices: readonly { value: string; label: string }[],
  options: FieldOptions,
  onCommit: (value: string) => void,
): Field {
  const id = newId('field');
  const input = h(
    'select',
    { id, 'aria-describedby': options.hint === undefined ? undefined : `${id}-hint` },
    ...choices.map(({ value, label: text }) => h('option', { value }, text)),
  );
  input.addEventListener('change', () => onCommit(input.value));
  return frame(label, options, input, value => {
    input.value = value;
  });
}

function frame(
  label: string,
  { hint, required = false, wide = false }: FieldOptions,
  input: HTMLInputElement | HTMLSelectElement,
  set: (value: string) => void,
): Field {
  const element = h(
    'div',
    { class: wide ? 'field wide' : 'field' },
    h(
      'label',
      { class: 'field-label', for: input.id },
      label,
      required ? h('em', {}, ' required') : undefined,
    ),
    input,
    hint === undefined ? undefined : h('small', { class: 'field-hint', id: `${input.id}-hint` }, hint),
  );
  const setFault = (isAtFault: boolean) =>
    setAttribute(input, 'aria-invalid', isAtFault ? 'true' : undefined);
  return { element, input, set, setFault };
}
