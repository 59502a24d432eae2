// Suggestions for the search box: the fields of the log kind, and the most frequent values of a field.
import { ApiError, runQuery } from '../api/client.ts';
import type { SuggestionGroup } from '../components/combobox.ts';
import { formatRecordCount } from '../format.ts';
import type { FieldName } from './record-fields.ts';
import { findTermAt, formatTerm, type PlacedTerm, removeTerm } from './search-expression.ts';

export interface SuggestionSource {
  readonly fields: readonly FieldName[];
  /** The filters of the page, as parameters of logs.fields; undefined if there is no project, or the token cannot call it. */
  readonly parameters: Readonly<Record<string, string>> | undefined;
}

const DESCRIPTIONS: Record<FieldName, string> = {
  status: 'status code, such as 500 or 5xx',
  method: 'request method',
  path: 'request path; * matches any text',
  host: 'host of the request',
  function: 'function id',
  level: 'level, such as error',
};

const MAX_SUGGESTIONS = 12;

/** The suggestions for the term at the caret. Each of them is the whole expression, with this term replaced. */
export async function suggest(
  expression: string,
  caret: number,
  source: SuggestionSource,
  signal: AbortSignal,
): Promise<SuggestionGroup[]> {
  const term = findTermAt(expression, caret);
  const { start, end } = term ?? { start: caret, end: caret };
  const before = expression.slice(0, start);
  const after = expression.slice(end);
  const field = source.fields.find(name => name === term?.field);
  if (term !== undefined && field !== undefined) {
    const values = await suggestValues(expression, { ...term, field }, source, signal);
    const suggestions = values.map(({ text, detail }) => ({
      value: `${before}${text}${after}`,
      label: text,
      detail,
    }));
    return [{ heading: `Values of ${field}`, suggestions }];
  }
  const suggestions = suggestFields(source.fields, term).map(({ text, detail }) => ({
    value: `${before}${text}${after}`,
    label: text,
    detail,
    caret: start + text.length,
  }));
  return [{ heading: 'Fields', suggestions }];
}

interface TermSuggestion {
  readonly text: string;
  readonly detail: string;
}

function suggestFields(fields: readonly FieldName[], term: PlacedTerm | undefined): TermSuggestion[] {
  if (term?.field !== undefined) return [];
  const typed = term?.value.toLowerCase() ?? '';
  const sign = term?.isExcluded === true ? '-' : '';
  return fields
    .filter(name => name.startsWith(typed))
    .map(name => ({ text: `${sign}${name}:`, detail: DESCRIPTIONS[name] }));
}

async function suggestValues(
  expression: string,
  term: PlacedTerm & { field: FieldName },
  { parameters }: SuggestionSource,
  signal: AbortSignal,
): Promise<TermSuggestion[]> {
  if (parameters === undefined) return [];
  const { field, isExcluded, value: typed } = term;
  const counts = await fetchCounts({ ...parameters, field, query: removeTerm(expression, term) }, signal);
  const all = field === 'status' ? [...sumStatusClasses(counts), ...counts] : counts;
  return all
    .filter(({ value }) => value.toLowerCase().includes(typed.toLowerCase()) && value !== '')
    .slice(0, MAX_SUGGESTIONS)
    .map(({ value, count }) => ({
      text: formatTerm({ field, value, isExcluded }),
      detail: formatRecordCount(count),
    }));
}

interface ValueCount {
  readonly value: string;
  readonly count: number;
}

async function fetchCounts(
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<ValueCount[]> {
  try {
    const { rows } = await runQuery('logs.fields', parameters, { signal });
    return rows.map(row => ({ value: String(row['value']), count: Number(row['count']) }));
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) return []; // the search itself reports the error
    throw error;
  }
}

function sumStatusClasses(counts: readonly ValueCount[]): ValueCount[] {
  const sums = new Map<string, number>();
  for (const { value, count } of counts) {
    if (!/^[1-5]\d\d$/.test(value)) continue;
    const statusClass = `${value.charAt(0)}xx`;
    sums.set(statusClass, (sums.get(statusClass) ?? 0) + count);
  }
  return [...sums].map(([value, count]) => ({ value, count })).sort((a, b) => (a.value < b.value ? 1 : -1));
}
