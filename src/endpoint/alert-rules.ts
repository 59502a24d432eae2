// The alerts that a definition declares, one for each set of parameters, and what can be wrong with them.
import { DendroError } from '../domain/errors.ts';
import type { BoundValues } from '../store/store.ts';
import { type EndpointDefinition, hasPages } from './definition.ts';
import type { DefinitionProblem } from './parameter-definition.ts';
import { bindParameters } from './parameters.ts';

export interface AlertRule {
  /** The name of the endpoint. If the parameters are a list of sets, the set follows: `NAME:kind=edge,minutes=15`. */
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly values: BoundValues;
}

export const PLACEHOLDER = /\{(\w+)\}/g;

export function listAlertRules(definition: EndpointDefinition): AlertRule[] {
  const { name, alert } = definition;
  if (alert === undefined) return [];
  const { parameters } = alert;
  const sets = Array.isArray(parameters) ? parameters : [parameters];
  return sets.map(set => ({
    name: Array.isArray(parameters) ? `${name}:${describe(set)}` : name,
    parameters: set,
    values: bindParameters(definition, new URLSearchParams(set)),
  }));
}

function describe(set: Readonly<Record<string, string>>): string {
  return Object.entries(set)
    .map(([name, value]) => `${name}=${value}`)
    .join();
}

/** `receivers`: the known names; undefined: they are not checked. */
export function findAlertProblem(
  definition: EndpointDefinition,
  receivers: readonly string[] | undefined,
): DefinitionProblem | undefined {
  const { alert, columns } = definition;
  if (alert === undefined) return undefined;
  const at = (key: string, message: string) => ({ path: ['alert', ...key.split('.')], message });
  if (hasPages(definition))
    return {
      path: ['alert'],
      message: 'cannot be used with a parameter of type cursor: a page does not have all rows',
    };
  const names = Object.keys(columns).join(', ');
  const reserved = alert.key.findIndex(each => each === 'alertname' || each === 'severity');
  if (reserved >= 0) return at(`key.${reserved}`, `${alert.key[reserved]} is a label of Alertmanager itself`);
  const column = alert.key.findIndex(each => !Object.hasOwn(columns, each));
  if (column >= 0) return at(`key.${column}`, `there is no column ${alert.key[column]}; columns: ${names}`);
  for (const [, placeholder = ''] of alert.summary?.matchAll(PLACEHOLDER) ?? [])
    if (!Object.hasOwn(columns, placeholder))
      return at('summary', `there is no column ${placeholder}; columns: ${names}`);
  const unknown = alert.notify?.findIndex(each => receivers !== undefined && !receivers.includes(each)) ?? -1;
  if (unknown >= 0)
    return at(
      `notify.${unknown}`,
      `there is no receiver ${alert.notify?.[unknown]} in the file of --receivers; it has: ${receivers?.join(', ') || 'none'}`,
    );
  return findParameterSetProblem(definition, alert.parameters);
}

type ParameterSet = Readonly<Record<string, string>>;

function findParameterSetProblem(
  definition: EndpointDefinition,
  parameters: ParameterSet | readonly ParameterSet[],
): DefinitionProblem | undefined {
  const path = ['alert', 'parameters'];
  const sets: readonly (readonly [string[], ParameterSet])[] = Array.isArray(parameters)
    ? parameters.map((set, index) => [[...path, String(index)], set] as const)
    : [[path, parameters as ParameterSet]];
  const seen = new Set<string>();
  for (const [setPath, set] of sets) {
    const unknown = Object.keys(set).find(name => !Object.hasOwn(definition.parameters, name));
    if (unknown !== undefined)
      return { path: [...setPath, unknown], message: `the endpoint has no parameter ${unknown}` };
    if (seen.has(describe(set))) return { path: setPath, message: 'is the same as an earlier set' };
    seen.add(describe(set));
    try {
      bindParameters(definition, new URLSearchParams(set));
    } catch (error) {
      if (!(error instanceof DendroError)) throw error;
      return { path: setPath, message: error.message };
    }
  }
  return undefined;
}
