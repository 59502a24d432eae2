// What is different about the records that match a search? Compares a sample of them with a sample of other records: the values of
// fields whose share differs most. An endpoint with `compares: true` has SQL that returns the samples, and these rows.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { isLogKind, LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { fieldSourceOf, LOG_FIELDS, type LogField } from '../domain/log-fields.ts';
import type { Condition } from '../store/condition.ts';
import type { Cell, Column, QueryResult } from '../store/store.ts';
import { isJsonObject } from '../system/parse-json.ts';
import { formatPath } from './search-expression.ts';

/** About as many of each of the two groups of records, as the SQL chooses them. */
const MAX_SAMPLE = 2000;
const MAX_FIELDS = 64;
/**
 * Different values of all fields. Ids, as values or as keys, must not use up the memory and the time of the event loop. The order of
 * the sample is random, so frequent values are among the first.
 */
const MAX_VALUES = 50_000;
const MAX_VALUES_PER_RECORD = 200;
/** After this many records, other requests run. */
const BATCH_ROWS = 50;
/** Of a value. Longer texts are rarely equal. */
const MAX_VALUE_CHARACTERS = 200;
const MAX_DEPTH = 5;

/** What the SQL returns: whether a record matches, how many such records there are, and the record. */
export const SAMPLE_COLUMNS: readonly Column[] = [
  { name: 'matches', type: 'integer' },
  { name: 'total', type: 'integer' },
  { name: 'kind', type: 'text' },
  ...LOG_FIELDS.map(name => ({ name, type: 'text' as const })),
  { name: 'metadata', type: 'json' },
];
export const MAX_SAMPLE_ROWS = 2 * MAX_SAMPLE;

interface Counts {
  matching: number;
  others: number;
}

/** The rows of the endpoint: field, value, share, other_share, difference, sampled, other_sampled, total, other_total. */
export async function compareRecords(
  sample: QueryResult,
  search: Condition | undefined,
  maxRows: number,
): Promise<QueryResult> {
  const groups = { matching: { sampled: 0, total: 0 }, others: { sampled: 0, total: 0 } };
  const fields = new Map<string, Map<string, Counts>>();
  let valueCount = 0;
  const searched = new Set(search === undefined ? [] : listFields(search));
  for (const [index, row] of sample.rows.entries()) {
    if (index % BATCH_ROWS === 0) await yieldToEventLoop();
    const name = row[0] === 0 ? 'others' : 'matching';
    groups[name].total = Number(row[1]);
    groups[name].sampled++;
    for (const [field, value] of readValues(row)) {
      const values = fields.get(field) ?? new Map<string, Counts>();
      const known = values.get(value);
      if (searched.has(field) || (known === undefined && valueCount === MAX_VALUES)) continue;
      if (known === undefined) valueCount++;
      const counts = known ?? { matching: 0, others: 0 };
      counts[name]++;
      fields.set(field, values.set(value, counts));
    }
  }
  const { matching, others } = groups;
  const rows = mostFrequent(fields).flatMap(([field, values]) =>
    [...values]
      .filter(([, counts]) => counts.matching + counts.others > 1) // ids and other values that never repeat
      .map(([value, counts]): Cell[] => {
        const share = counts.matching / Math.max(1, matching.sampled);
        const otherShare = counts.others / Math.max(1, others.sampled);
        return [field, value, share, otherShare, share - otherShare];
      }),
  );
  rows.sort((a, b) => Math.abs(Number(b[4])) - Math.abs(Number(a[4])) || compareTexts(a, b));
  const sizes = [matching.sampled, others.sampled, matching.total, others.total];
  const isComparable = matching.sampled > 0 && others.sampled > 0;
  const differing = isComparable ? rows.filter(row => row[4] !== 0) : [];
  const result = differing.slice(0, maxRows).map(row => [...row, ...sizes]);
  return { ...sample, rows: result, truncated: false, exceedsMaxBytes: false };
}

function compareTexts(a: readonly Cell[], b: readonly Cell[]): number {
  const [one, other] = [`${a[0]}\0${a[1]}`, `${b[0]}\0${b[1]}`];
  return one < other ? -1 : 1;
}

/** The fields that the most records have. */
function mostFrequent(
  fields: ReadonlyMap<string, ReadonlyMap<string, Counts>>,
): readonly (readonly [string, ReadonlyMap<string, Counts>])[] {
  const size = (values: ReadonlyMap<string, Counts>) =>
    [...values.values()].reduce((sum, { matching, others }) => sum + matching + others, 0);
  return [...fields]
    .map(([field, values]) => ({ field, values, size: size(values) }))
    .sort((a, b) => b.size - a.size || (a.field < b.field ? -1 : 1))
    .slice(0, MAX_FIELDS)
    .map(({ field, values }) => [field, values] as const);
}

/** Where the metadata has the value of a searchable field that is a column. */
const COLUMN_SOURCES: Partial<Record<LogKind, Partial<Record<LogField, string>>>> = {
  edge: { path: 'request.path' },
  function_edge: { status: 'response.status_code', function: 'metadata.function_id' },
};

/** The path in the metadata that has the value of a searchable field. */
function findSource(kind: string, field: LogField): string | undefined {
  if (!isLogKind(kind)) return undefined;
  const source = fieldSourceOf(kind, field) ?? { column: '' };
  return 'metadata' in source ? formatPath(source.metadata) : COLUMN_SOURCES[kind]?.[field];
}

/** The values of a record by the names that a search expression has for their fields. */
function readValues(row: readonly Cell[]): Map<string, string> {
  const kind = String(row[2]);
  const values = new Map<string, string>([['kind', kind]]);
  const metadata = row[3 + LOG_FIELDS.length];
  if (typeof metadata === 'string') addMetadata(values, JSON.parse(metadata), []);
  for (const [index, field] of LOG_FIELDS.entries()) {
    values.delete(findSource(kind, field) ?? ''); // the same value
    const value = row[3 + index];
    if (typeof value === 'string' && value.length <= MAX_VALUE_CHARACTERS) values.set(field, value);
  }
  return values;
}

/** `areInArrays`: whether the objects of the path are the only items of arrays. Search expressions find all of them so, or none. */
function addMetadata(
  values: Map<string, string>,
  value: unknown,
  keys: readonly string[],
  areInArrays?: boolean,
): void {
  if (values.size >= MAX_VALUES_PER_RECORD) return;
  if (typeof value === 'object' && value !== null) {
    const isInArray = Array.isArray(value);
    const object = isInArray && value.length === 1 ? value[0] : value;
    if (keys.length >= MAX_DEPTH || !isJsonObject(object) || (areInArrays ?? isInArray) !== isInArray) return;
    const isPathInArrays = keys.length === 0 ? undefined : isInArray; // the metadata itself does not count
    for (const key in object) addMetadata(values, object[key], [...keys, key], isPathInArrays);
    return;
  }
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) return;
  const text = String(value ?? '');
  const name = formatPath(keys);
  if (text !== '' && text.length <= MAX_VALUE_CHARACTERS && name !== undefined) values.set(name, text);
}

/** The fields that a condition names. Their values differ because the search says so. */
function listFields(condition: Condition): string[] {
  if ('all' in condition) return condition.all.flatMap(listFields);
  if ('any' in condition) return condition.any.flatMap(listFields);
  if ('not' in condition) return listFields(condition.not);
  if ('contains' in condition) return [];
  const { field } = condition;
  if ('searchable' in field) return [field.searchable];
  if ('column' in field) return [field.column, `metadata.${field.column}`];
  const name = formatPath(field.path) ?? '';
  const sameValues = LOG_FIELDS.filter(each => LOG_KINDS.some(kind => findSource(kind, each) === name));
  return [name, ...sameValues];
}
