// Suggestions for the search box: the fields of the log kind, the paths in the metadata of the loaded records, and the most frequent
// values of a field.
import { ApiError, runQuery } from '../api/client.ts';
import type { SuggestionGroup } from '../components/combobox.ts';
import { formatRecordCount } from '../format.ts';
import { findTermAt, formatTerm, type PlacedTerm, removeTerm } from './search-expression.ts';

export interface SuggestionSource {
  readonly fields: readonly string[];
  /** Other fields: the paths in the metadata of the loaded records. */
  listPaths(): readonly string[];
  /** The filters of the page, as parameters of logs.fields; undefined if there is no project, or the token cannot call it. */
  readonly parameters: Readonly<Record<string, string>> | undefined;
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  status: 'status code, such as 500 or 5xx',
  method: 'request method',
  path: 'request path; * matches any text',
  host: 'host of the request',
  function: 'function id',
  level: 'level, such as error',
  kind: 'log kind',
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
  if (term === undefined && /[^\s(-]$/.test(before)) return []; // directly after OR or a parenthesis
  const field = term?.field;
  if (term !== undefined && field !== undefined) {
    const isKnown = source.fields.includes(field) || field.includes('.') || field === 'trace_id';
    const values = isKnown ? await suggestValues(expression, { ...term, field }, source, signal) : [];
    const suggestions = values.map(({ text, detail }) => ({
      value: `${before}${text}${after}`,
      label: text,
      detail,
    }));
    return [{ heading: `Values of ${field}`, suggestions }];
  }
  const typed = term?.value.toLowerCase() ?? '';
  const toSuggestions = (names: readonly string[]) =>
    names.map(name => {
      const text = `${term?.isExcluded === true ? '-' : ''}${name}:`;
      const detail = DESCRIPTIONS[name] ?? '';
      return { value: `${before}${text}${after}`, label: text, detail, caret: start + text.length };
    });
  const paths = typed === '' ? [] : source.listPaths().filter(name => name.toLowerCase().includes(typed));
  return [
    { heading: 'Fields', suggestions: toSuggestions(source.fields.filter(name => name.startsWith(typed))) },
    {
      heading: 'Metadata of the loaded records',
      suggestions: toSuggestions(paths.slice(0, MAX_SUGGESTIONS)),
    },
  ];
}

interface TermSuggestion {
  readonly text: string;
  readonly detail: string;
}

async function suggestValues(
  expression: string,
  term: PlacedTerm & { field: string },
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
