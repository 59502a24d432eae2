// The log kinds: their names for people, the fields that their search expressions know, and the columns of their lists.
import type { Row } from '../api/client.ts';
import { h } from '../dom.ts';
import { formatMilliseconds } from '../format.ts';
import { type FieldName, readExecutionTime, readField, readPath, readStatus } from './record-fields.ts';

/** A column of the list, between the time and the message. */
export interface LogColumn {
  readonly heading: string;
  /** The name of a CSS class that sets the width, and of the column in a CSV file. */
  readonly name: string;
  readonly numeric?: boolean;
  read(record: Row): string | undefined;
  /** How the list shows the value; without it, as text. */
  createCell?(record: Row): HTMLElement;
}

export interface LogKind {
  readonly title: string;
  /** The fields of a search expression, and where the metadata has them. */
  readonly fields: Partial<Record<FieldName, string>>;
  readonly columns: readonly LogColumn[];
}

export const STATUS_COLUMN: LogColumn = {
  heading: 'Status',
  name: 'status',
  read: record => readStatus(record)?.toString(),
  createCell: record => {
    const status = readStatus(record);
    return h('span', { class: statusClass(status) }, String(status ?? '–'));
  },
};

const LEVEL_COLUMN: LogColumn = {
  heading: 'Level',
  name: 'level',
  read: record => readField(record, 'level'),
  createCell: record => {
    const level = readField(record, 'level');
    return h('span', { class: levelClass(level) }, level?.toLowerCase() ?? '–');
  },
};

const METHOD_COLUMN = createFieldColumn('Method', 'method');
const PATH_COLUMN = createFieldColumn('Path', 'path');
const FUNCTION_COLUMN = createFieldColumn('Function', 'function');

const EXECUTION_TIME_COLUMN: LogColumn = {
  heading: 'Duration',
  name: 'duration',
  numeric: true,
  read: record => readExecutionTime(record)?.toString(),
  createCell: record => {
    const ms = readExecutionTime(record);
    return h('span', {}, ms === undefined ? '–' : formatMilliseconds(ms));
  },
};

const DATABASE_USER_COLUMN: LogColumn = {
  heading: 'User',
  name: 'user',
  read: record => {
    const user = readPath(record['metadata'], ['parsed', 'user_name']);
    return typeof user === 'string' ? user : undefined;
  },
};

const LEVEL = { level: 'level' };

const KINDS: Readonly<Record<string, LogKind>> = {
  edge: {
    title: 'Edge requests',
    fields: {
      status: 'response.status_code',
      method: 'request.method',
      path: 'request.path',
      host: 'request.host',
    },
    columns: [STATUS_COLUMN, METHOD_COLUMN, PATH_COLUMN],
  },
  postgres: {
    title: 'Postgres',
    fields: { host: 'host', level: 'parsed.error_severity' },
    columns: [LEVEL_COLUMN, DATABASE_USER_COLUMN],
  },
  function_edge: {
    title: 'Function requests',
    fields: {
      status: 'response.status_code',
      method: 'request.method',
      path: 'request.pathname',
      host: 'request.host',
      function: 'function_id',
    },
    columns: [STATUS_COLUMN, FUNCTION_COLUMN, EXECUTION_TIME_COLUMN],
  },
  function: {
    title: 'Function output',
    fields: { function: 'function_id', ...LEVEL },
    columns: [LEVEL_COLUMN, FUNCTION_COLUMN],
  },
  auth: {
    title: 'Auth',
    fields: { status: 'status', method: 'method', path: 'path', host: 'host', ...LEVEL },
    columns: [LEVEL_COLUMN, STATUS_COLUMN, PATH_COLUMN],
  },
  realtime: { title: 'Realtime', fields: LEVEL, columns: [LEVEL_COLUMN] },
  storage: {
    title: 'Storage',
    fields: {
      status: 'res.statusCode',
      method: 'req.method',
      path: 'req.url',
      host: 'req.hostname',
      ...LEVEL,
    },
    columns: [LEVEL_COLUMN, STATUS_COLUMN, METHOD_COLUMN, PATH_COLUMN],
  },
  rest: { title: 'REST API', fields: { host: 'host', ...LEVEL }, columns: [LEVEL_COLUMN] },
  pooler: { title: 'Pooler', fields: { host: 'host', ...LEVEL }, columns: [LEVEL_COLUMN] },
};

/** A kind that this console does not know has a list without columns of its own. */
export function findKind(name: string): LogKind {
  return KINDS[name] ?? { title: name, fields: {}, columns: [] };
}

export function listFields({ fields }: LogKind): FieldName[] {
  return Object.keys(fields) as FieldName[];
}

/** The search field that is stored at this place in the metadata; undefined if there is none, or it cannot have this value. */
export function findField(kind: LogKind, path: readonly string[], value: string): FieldName | undefined {
  // Some log shippers wrap every object in an array of one element.
  const name = path.filter(key => key !== '0').join('.');
  const field = listFields(kind).find(each => kind.fields[each] === name);
  return field === 'status' && !/^[1-5]\d\d$/.test(value) ? undefined : field;
}

function createFieldColumn(heading: string, field: FieldName): LogColumn {
  return { heading, name: field, read: record => readField(record, field) };
}

function statusClass(status: number | undefined): string {
  if (status === undefined) return 'status status-none';
  return `status status-${Math.min(5, Math.floor(status / 100))}`;
}

export type Severity = 'error' | 'warning' | 'info' | 'debug' | 'other';

const SEVERITIES: Readonly<Record<string, Severity>> = {
  ...{
    error: 'error',
    fatal: 'error',
    panic: 'error',
    critical: 'error',
    alert: 'error',
    emergency: 'error',
  },
  ...{ warning: 'warning', warn: 'warning' },
  ...{ info: 'info', log: 'info', notice: 'info' },
  ...{ debug: 'debug', trace: 'debug' },
};

/** Ignores a digit at the end of a level, as in DEBUG1 of Postgres. */
export function findSeverity(level: string): Severity {
  return SEVERITIES[level.toLowerCase().replace(/\d$/, '')] ?? 'other';
}

function levelClass(level: string | undefined): string {
  const classes: Record<Severity, string> = {
    error: 'status-5',
    warning: 'status-4',
    info: 'status-3',
    debug: 'status-none',
    other: 'status-none',
  };
  return `status ${classes[level === undefined ? 'other' : findSeverity(level)]}`;
}
