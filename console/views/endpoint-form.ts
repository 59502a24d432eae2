// A form made from an endpoint's parameters, each with the rule that its definition gives it.
import type { Endpoint, Parameter } from '../api/catalog.ts';
import { type Field, makeSelect, makeTextField } from '../parts/field.ts';

export interface EndpointForm {
  readonly elements: readonly HTMLElement[];
  set(settings: Readonly<Record<string, string>>): void;
  markFault(param: string | undefined): void;
}

/** How the address calls a parameter: apart from the names that every view has. */
export const settingOf = (parameter: string): string => `p.${parameter}`;

/** The project has its field at the top of the page. */
export function makeEndpointForm(
  { parameters }: Endpoint,
  change: (settings: Record<string, string>) => void,
): EndpointForm {
  const fields = new Map<string, Field>();
  for (const parameter of parameters.filter(({ name }) => name !== 'project'))
    fields.set(
      parameter.name,
      makeField(parameter, value => change({ [settingOf(parameter.name)]: value })),
    );
  return {
    elements: [...fields.values()].map(({ element }) => element),
    set(settings) {
      for (const parameter of parameters)
        fields.get(parameter.name)?.set(settings[settingOf(parameter.name)] ?? parameter.otherwise ?? '');
    },
    markFault(param) {
      for (const [name, field] of fields) field.setFault(name === param);
    },
  };
}

function makeField(parameter: Parameter, onCommit: (value: string) => void): Field {
  const { name, type, required, description: hint, choices = [], otherwise } = parameter;
  const options = { required, hint, mono: true };
  switch (type) {
    case 'choice': {
      const none = otherwise === null || otherwise === undefined ? [{ value: '', label: '–' }] : [];
      return makeSelect(
        name,
        [...none, ...choices.map(value => ({ value, label: value }))],
        options,
        onCommit,
      );
    }
    case 'timestamp':
      return makeTextField(name, { ...options, placeholder: '2026-11-14T09:30:00Z' }, onCommit);
    default:
      return makeTextField(
        name,
        { ...options, placeholder: type === 'pattern' ? 'regular expression' : '' },
        onCommit,
      );
  }
}
