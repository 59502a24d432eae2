// The searchable fields of log records: the same few fields for every log kind, and where each kind has them. Searches, histograms and
// the values of a field all read them here.
import type { LogKind } from './log-columns.ts';

export const LOG_FIELDS = ['status', 'method', 'path', 'host', 'function', 'level'] as const;
export type LogField = (typeof LOG_FIELDS)[number];

/** A column of the kind's table, or the keys that lead to the value in the metadata, where one key with dots counts like several keys. */
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

/** Where a kind has a field; undefined: the kind does not have it. */
export function fieldSourceOf(kind: LogKind, field: LogField): FieldSource | undefined {
  return SOURCES[kind][field];
}

export function fieldsOf(kind: LogKind): readonly LogField[] {
  return LOG_FIELDS.filter(field => SOURCES[kind][field] !== undefined);
}
