// The searchable fields of log records. All log kinds use the same field names, but a kind can lack a field, and each kind has a
// field in its own place. Searches, histograms and lists of field values all use these definitions.
import type { LogKind } from './log-columns.ts';

export const LOG_FIELDS = ['status', 'method', 'path', 'host', 'function', 'level'] as const;
export type LogField = (typeof LOG_FIELDS)[number];

/**
 * A column of the kind's table, or the path of keys to the value in the metadata. Instead of nested objects, a record can have
 * one flat key with dots, such as `request.method`.
 */
export type FieldSource = { readonly column: string } | { readonly metadata: readonly string[] };

const inMetadata = (...metadata: string[]): FieldSource => ({ metadata });

const SOURCES: Readonly<Record<LogKind, Partial<Record<LogField, FieldSource>>>> = {
  edge: {
    status: inMetadata('response', 'status_code'),
    method: inMetadata('request', 'method'),
    path: { column: 'path' },
    host: inMetadata('request', 'host'),
  },
  postgres: { host: inMetadata('host'), level: inMetadata('parsed', 'error_severity') },
  function_edge: {
    status: { column: 'status_code' },
    method: inMetadata('request', 'method'),
    path: inMetadata('request', 'pathname'),
    host: inMetadata('request', 'host'),
    function: { column: 'function_id' },
  },
  function: { function: inMetadata('function_id'), level: inMetadata('level') },
  auth: {
    status: inMetadata('status'),
    method: inMetadata('method'),
    path: inMetadata('path'),
    host: inMetadata('host'),
    level: inMetadata('level'),
  },
  realtime: { level: inMetadata('level') },
  storage: {
    status: inMetadata('res', 'statusCode'),
    method: inMetadata('req', 'method'),
    path: inMetadata('req', 'url'),
    host: inMetadata('req', 'hostname'),
    level: inMetadata('level'),
  },
  rest: { host: inMetadata('host'), level: inMetadata('level') },
  pooler: { host: inMetadata('host'), level: inMetadata('level') },
};

/**
 * A field that a kind has in the metadata. A store computes its column when it inserts a record: a text, or null if the record
 * does not have the field. A path is cut at the first `?`.
 */
export interface MetadataField {
  readonly field: LogField;
  readonly keys: readonly string[];
  readonly column: string;
}

// The JSON of values that are fields. A number such as 500.0 counts as the whole number 500, because some engines print it as 500.
export const STATUS_JSON = '^"?([1-5][0-9][0-9])(?:[.]0)?"?$';
export const WHOLE_NUMBER_JSON = '^(-?[0-9]{1,15})(?:[.]0)?$';

/** Where a kind has a field; undefined: the kind does not have it. */
export function fieldSourceOf(kind: LogKind, field: LogField): FieldSource | undefined {
  return SOURCES[kind][field];
}

export function fieldsOf(kind: LogKind): readonly LogField[] {
  return LOG_FIELDS.filter(field => SOURCES[kind][field] !== undefined);
}

export function metadataFieldsOf(kind: LogKind): readonly MetadataField[] {
  return fieldsOf(kind).flatMap(field => {
    const source = fieldSourceOf(kind, field);
    return source !== undefined && 'metadata' in source
      ? [{ field, keys: source.metadata, column: fieldColumn(field) }]
      : [];
  });
}

/** The name of the column of a field that a kind has in the metadata. */
export function fieldColumn(field: LogField): string {
  return `field_${field}`;
}
