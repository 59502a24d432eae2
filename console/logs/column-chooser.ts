// The menu that chooses the columns of the list: the fields of the log kind, and any path in the metadata.
import { createComboboxField } from '../components/combobox.ts';
import { h, replaceChildren } from '../dom.ts';
import { chooseColumns, listColumns } from './kinds.ts';

export interface ColumnChooser {
  readonly element: HTMLElement;
  /** `names` is the setting: the names of the columns, separated by commas; empty: those of the kind. */
  show(kind: string, names: string): void;
}

export function createColumnChooser(
  listPaths: () => readonly string[],
  onChange: (names: string) => void,
): ColumnChooser {
  const choices = h('div', { class: 'column-choices' });
  let chosen: readonly string[] = [];
  const reset = h('button', { type: 'button', class: 'button small', on: { click: () => onChange('') } });
  reset.append('Columns of the log kind');
  const addField = createComboboxField('Add a field', {
    placeholder: 'request.headers.cf_ray',
    suggest: async text => [
      {
        heading: 'Metadata of the loaded records',
        suggestions: listPaths()
          .filter(path => path.includes(text) && !path.includes(',')) // a comma separates the fields in the link
          .map(value => ({ value })),
      },
    ],
    onCommit: field => {
      addField.setValue('');
      if (field !== '') onChange([...chosen, field].join());
    },
  });
  const element = h(
    'details',
    { class: 'menu' },
    h('summary', { class: 'button small' }, 'Columns'),
    h('div', { class: 'card menu-body' }, choices, addField.element, reset),
  );
  element.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    element.open = false;
    element.querySelector('summary')?.focus();
  });
  return {
    element,
    show(kind, names) {
      const columns = chooseColumns(kind, names);
      chosen = columns.map(({ name }) => name);
      const known = listColumns(kind).filter(({ name }) => !chosen.includes(name));
      reset.hidden = names === '';
      const inputs = [...columns, ...known].map(({ name, heading }) => {
        const input = h('input', { type: 'checkbox', checked: chosen.includes(name) });
        input.addEventListener('change', () => {
          const others = chosen.filter(other => other !== name);
          onChange((input.checked ? [...others, name] : others).join() || 'none');
        });
        return h('label', {}, input, ' ', heading);
      });
      replaceChildren(choices, ...inputs);
    },
  };
}
