// The catalog as the API gives it: what each endpoint takes and answers.

export interface Parameter {
  readonly name: string;
  readonly type: 'text' | 'pattern' | 'timestamp' | 'choice';
  readonly required: boolean;
  readonly description: string;
  readonly choices?: readonly string[];
  /** What any other value behaves as; null: another value is an error. */
  readonly otherwise?: string | null;
}

export type ColumnType = 'text' | 'integer' | 'number' | 'json' | 'unix_microseconds' | 'utc_datetime';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly description: string;
}

export interface Endpoint {
  readonly name: string;
  readonly description: string;
  readonly cache: { readonly lifetime_seconds: number };
  readonly parameters: readonly Parameter[];
  readonly columns: readonly Column[];
}
