// The definitions of the columns of the searchable fields (domain/log-fields.ts). ClickHouse computes their values by DEFAULT
// expressions, so that an insert needs only the columns of a log line.
import { columnsOf, type LogKind } from '../../domain/log-columns.ts';
import {
  type LogField,
  type MetadataField,
  metadataFieldsOf,
  STATUS_JSON,
  WHOLE_NUMBER_JSON,
} from '../../domain/log-fields.ts';

export function fieldColumnDefinitions(kind: LogKind): string[] {
  const types = new Map(columnsOf(kind).map(({ name, clickhouse }) => [name, clickhouse]));
  return metadataFieldsOf(kind).map(
    field => `${field.column} ${types.get(field.column)} default ${fieldSql(field)} codec(ZSTD(1))`,
  );
}

function fieldSql(field: MetadataField): string {
  const text = textSql(field);
  return field.field === 'path' ? `nullIf(splitByChar('?', ifNull(${text}, ''))[1], '')` : text;
}

function textSql({ field, keys }: MetadataField): string {
  const [object = '', ...others] = keys;
  if (others.length === 0) return readJson(field, keys);
  // Some senders wrap every object in an array of one. OpenTelemetry has flat attributes such as request.method.
  const wrapped = ifArrayOfOne(object, readJson(field, [object, 1, ...others]));
  return `coalesce(${readJson(field, keys)}, ${wrapped}, ${readJson(field, [keys.join('.')])})`;
}

/** SQL for a field as text; null if the JSON is not a valid value. Steps are keys of objects and indexes in arrays, from 1. */
function readJson(field: LogField, steps: readonly (string | number)[]): string {
  const literals = steps.map(step => (typeof step === 'number' ? step : `'${step}'`));
  const json = `JSONExtractRaw(metadata, ${literals.join(', ')})`;
  if (field === 'status') return `nullIf(extract(${json}, '${STATUS_JSON}'), '')`;
  return `nullIf(if(startsWith(${json}, '"'), JSONExtractString(${json}), extract(${json}, '${WHOLE_NUMBER_JSON}')), '')`;
}

/**
 * Checks the type, because JSONLength and an index also work on an object: they count and select its fields. Searches for text
 * first, which is much faster than parsing JSON, because most records have no such array.
 */
function ifArrayOfOne(key: string, value: string): string {
  return `if(position(metadata, '[') > 0 and position(metadata, '"${key}"') > 0 and JSONType(metadata, '${key}') = 'Array' and JSONLength(metadata, '${key}') = 1, ${value}, null)`;
}
