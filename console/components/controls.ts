// Form controls: text field, select, segmented control, and a button that copies text. A text field reports its value
// when the user presses Enter or leaves the field, not on every key.
import { createId, h, setInvalid } from '../dom.ts';

export interface Field {
  readonly element: HTMLElement;
  setValue(value: string): void;
  setInvalid(isInvalid: boolean): void;
}

export interface FieldOptions {
  readonly type?: 'text' | 'datetime-local';
  readonly placeholder?: string;
  readonly hint?: string;
  readonly required?: boolean;
  readonly mono?: boolean;
}

export function createTextField(
  label: string,
  options: FieldOptions,
  onCommit: (value: string) => void,
): Field {
  const id = createId('field');
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
  // A date field fires `change` for every digit.
  input.addEventListener(options.type === 'datetime-local' ? 'blur' : 'change', commit);
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter') commit();
  });
  return createField(label, options, input, value => {
    if (input.value !== value) input.value = value;
    committed = input.value; // a date field changes the text: …T09:30:00 becomes …T09:30
  });
}

export interface Option {
  readonly value: string;
  readonly label: string;
  /** The full text of a short label, as tooltip and accessible name. */
  readonly title?: string;
}

export function createSelect(
  label: string,
  choices: readonly Option[],
  options: FieldOptions,
  onChange: (value: string) => void,
): Field {
  const id = createId('field');
  const input = h(
    'select',
    { id, 'aria-describedby': options.hint === undefined ? undefined : `${id}-hint` },
    ...choices.map(({ value, label: text }) => h('option', { value }, text)),
  );
  input.addEventListener('change', () => onChange(input.value));
  return createField(label, options, input, value => {
    input.value = value;
  });
}

function createField(
  label: string,
  { hint, required = false }: FieldOptions,
  input: HTMLInputElement | HTMLSelectElement,
  setValue: (value: string) => void,
): Field {
  const element = h(
    'div',
    { class: 'field' },
    h(
      'label',
      { class: 'field-label', for: input.id },
      label,
      required ? h('em', {}, ' required') : undefined,
    ),
    input,
    hint === undefined ? undefined : h('small', { class: 'field-hint', id: `${input.id}-hint` }, hint),
  );
  return { element, setValue, setInvalid: isInvalid => setInvalid(input, isInvalid) };
}

export interface SegmentedControl {
  readonly element: HTMLElement;
  setValue(value: string): void;
  /** Moves the focus to the chosen value. */
  focus(): void;
}

/** Radio buttons that look like one control. */
export function createSegmentedControl(
  label: string,
  options: readonly Option[],
  onChange: (value: string) => void,
): SegmentedControl {
  const name = createId('segments');
  const inputs = new Map<string, HTMLInputElement>();
  const segments = options.map(option => {
    const input = h('input', { type: 'radio', name, value: option.value, 'aria-label': option.title });
    input.addEventListener('change', () => onChange(option.value));
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
    setValue(value) {
      for (const [key, input] of inputs) input.checked = key === value;
    },
    focus: () => [...inputs.values()].find(({ checked }) => checked)?.focus(),
  };
}

const COPY_FEEDBACK_MS = 2000;

export function createCopyButton(label: string, getText: () => string): HTMLElement {
  const caption = h('span', { 'aria-live': 'polite' }, label);
  const button = h('button', { type: 'button', class: 'button small' }, caption);
  button.addEventListener('click', async () => {
    caption.textContent = (await copyText(getText(), button)) ? 'Copied' : 'Copy failed';
    setTimeout(() => {
      caption.textContent = label;
    }, COPY_FEEDBACK_MS);
  });
  return button;
}

/** Browsers offer the clipboard API on HTTPS and localhost only; elsewhere `execCommand` still works. */
export async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'visually-hidden', readonly: true });
    area.value = text;
    button.after(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    button.focus();
    return isCopied;
  }
}
