// Fills the placeholders in the SQL of an endpoint for one log kind or for all of them: {{logs}} is the table, {{kind}} the name of
// the log kind, {{status}} and so on are the searchable fields (domain/log-fields.ts) as text, {{category}} is the level or, for a
// kind with a status, its class such as 5xx, {{is_error}} is whether a record is an error, {{message_pattern}} is the masked message,
// {{message_sample}} its first 1,000 characters,
// {{search}} is the condition of the parameter of type search, and a parameter of type field is the value of that field. The last two
// are filled for each request, with bound values: no text of a request becomes SQL.
import { LOG_FIELDS } from '../domain/log-fields.ts';
import type { Condition, RecordField } from '../store/condition.ts';
import { ConditionCompiler } from '../store/condition-sql.ts';
import { type KindOrAll, LogSql } from '../store/log-sql.ts';
import type { BoundValues, StoreName } from '../store/store.ts';

const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g;

/** The placeholders that every endpoint can use. */
export const PLACEHOLDERS: readonly string[] = [
  'logs',
  'kind',
  ...LOG_FIELDS,
  'category',
  'is_error',
  'message_pattern',
  'message_sample',
];

/** The names of the placeholders that the SQL uses. */
export function listPlaceholders(sql: string): string[] {
  return [...sql.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}

export interface TemplateValues {
  readonly store: StoreName;
  readonly kind: KindOrAll;
  /** {{search}}, if the endpoint has a parameter of type search. */
  readonly search: Condition | undefined;
  /** By the names of the parameters of type field. Undefined: the parameter is absent, and its value is null. */
  readonly fields: ReadonlyMap<string, RecordField | undefined>;
}

/** `values` are those of the parameters that the filled SQL has and the template has not. */
export function fillTemplate(
  template: string,
  { store, kind, search, fields }: TemplateValues,
): { readonly sql: string; readonly values: BoundValues } {
  const logs = new LogSql(store, kind);
  const compiler = new ConditionCompiler(logs);
  const fill = (name: string): string | undefined => {
    if (name === 'logs') return logs.table;
    if (name === 'kind') return logs.kind;
    if (name === 'message_pattern') return compiler.messagePattern();
    if (name === 'message_sample') return compiler.messageSample();
    if (name === 'is_error') return `(${logs.isError})`;
    if (name === 'category') return `(${logs.category})`;
    if (name === 'search' && search !== undefined) return `(${compiler.compile(search)})`;
    const searchable = LOG_FIELDS.find(field => field === name);
    if (searchable !== undefined) return `(${logs.field(searchable)})`;
    if (!fields.has(name)) return undefined;
    const field = fields.get(name);
    return field === undefined ? logs.dialect.noText : `(${compiler.fieldText(field)})`;
  };
  const sql = template.replace(PLACEHOLDER, (text, name: string) => fill(name) ?? text);
  return { sql, values: compiler.values };
}
