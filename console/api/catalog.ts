// The endpoint catalog as GET /api/endpoints returns it. The console takes intervals and tiers from it.

export interface Parameter {
  readonly name: string;
  readonly type: 'text' | 'pattern' | 'timestamp' | 'choice';
  readonly required: boolean;
  readonly description: string;
  /** The choices in the order of endpoint.yaml; only for the type `choice`. */
  readonly choices?: readonly string[];
  /** The values of each choice, such as `window_seconds`; only for the type `choice`. */
  readonly choice_values?: Readonly<Record<string, ChoiceValues>>;
  /** The choice that applies to any unlisted value; null if an unlisted value is an error. */
  readonly fallback?: string | null;
}

export type ChoiceValues = Readonly<Record<string, string | number>>;

export type ColumnType = 'text' | 'integer' | 'number' | 'json' | 'unix_microseconds' | 'utc_datetime';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly description: string;
}

export interface Endpoint {
  readonly name: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly columns: readonly Column[];
}

export interface Choice {
  readonly name: string;
  readonly values: ChoiceValues;
}

export interface Choices {
  readonly all: readonly Choice[];
  /** The choice of a page whose URL contains no choice: the fallback, or the first choice if there is no fallback. */
  readonly default: Choice;
}

export function readChoices(endpoint: Endpoint, parameterName: string): Choices {
  const parameter = endpoint.parameters.find(({ name }) => name === parameterName);
  const { choices = [], choice_values = {}, fallback } = parameter ?? {};
  const all = choices.map(name => ({ name, values: choice_values[name] ?? {} }));
  const defaultChoice = all.find(({ name }) => name === fallback) ?? all[0];
  if (defaultChoice === undefined) throw new Error(`${endpoint.name} has no choices for ${parameterName}`);
  return { all, default: defaultChoice };
}
