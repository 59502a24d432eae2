// The log kinds: their names for people, the fields that their search expressions know, and the columns of their lists.
import type { Row } from '../api/client.ts';
import { h } from '../dom.ts';
import { formatCount, formatMilliseconds } from '../format.ts';
import {
  type FieldName,
  type FieldPlaces,
  readExecutionTime,
  readField,
  readPath,
  readPathText,
  readStatus,
} from './record-fields.ts';

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
  /** In a histogram of all kinds. */
  readonly color: string;
  /** The fields of a search expression, and where the metadata has them. */
  readonly fields: FieldPlaces;
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

const KIND_COLUMN: LogColumn = {
  heading: 'Log',
  name: 'kind',
  read: record => readKind(record).title,
};

/** For records of several kinds: most have only one of the two. */
const STATUS_OR_LEVEL_COLUMN: LogColumn = {
  heading: 'Status',
  name: 'status_or_level',
  read: record => STATUS_COLUMN.read(record) ?? LEVEL_COLUMN.read(record),
  createCell: record =>
    (readStatus(record) === undefined ? LEVEL_COLUMN : STATUS_COLUMN).createCell?.(record) ?? h('span'),
};

const ALL_COLUMNS: readonly LogColumn[] = [
  ...[KIND_COLUMN, STATUS_COLUMN, LEVEL_COLUMN, METHOD_COLUMN, PATH_COLUMN, FUNCTION_COLUMN],
  ...[createFieldColumn('Host', 'host'), EXECUTION_TIME_COLUMN, DATABASE_USER_COLUMN, STATUS_OR_LEVEL_COLUMN],
];

/** The columns with these names, separated by commas; without names, those of the kind. Any path in the metadata is a name. */
export function chooseColumns(kindName: string, names: string): readonly LogColumn[] {
  if (names === '') return findKind(kindName).columns;
  if (names === 'none') return [];
  return names
    .split(',')
    .map(name => ALL_COLUMNS.find(column => column.name === name) ?? createPathColumn(name));
}

/** The columns that a list of the kind can have, besides the paths in the metadata. */
export function listColumns(kindName: string): readonly LogColumn[] {
  const { columns, fields } = findKind(kindName);
  return [...new Set([...columns, ...ALL_COLUMNS.filter(({ name }) => name in fields)])];
}

function createPathColumn(name: string): LogColumn {
  return { heading: name, name, read: record => readPathText(record, name) };
}

const LEVEL = { level: 'level' };

/** All log kinds at once. */
export const ALL_KINDS = 'all';

const KINDS: Readonly<Record<string, LogKind>> = {
  [ALL_KINDS]: {
    color: 'chart-gray',
    title: 'All logs',
    // Each kind has them in a place of its own.
    fields: { status: '', method: '', path: '', host: '', function: '', level: '' },
    columns: [KIND_COLUMN, STATUS_OR_LEVEL_COLUMN],
  },
  edge: {
    color: 'chart-blue',
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
    color: 'chart-violet',
    title: 'Postgres',
    fields: { host: 'host', level: 'parsed.error_severity' },
    columns: [LEVEL_COLUMN, DATABASE_USER_COLUMN],
  },
  function_edge: {
    color: 'chart-amber',
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
    color: 'chart-pink',
    title: 'Function output',
    fields: { function: 'function_id', ...LEVEL },
    columns: [LEVEL_COLUMN, FUNCTION_COLUMN],
  },
  auth: {
    color: 'chart-teal',
    title: 'Auth',
    fields: { status: 'status', method: 'method', path: 'path', host: 'host', ...LEVEL },
    columns: [LEVEL_COLUMN, STATUS_COLUMN, PATH_COLUMN],
  },
  realtime: { color: 'chart-green', title: 'Realtime', fields: LEVEL, columns: [LEVEL_COLUMN] },
  storage: {
    color: 'chart-sky',
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
  rest: {
    color: 'chart-brown',
    title: 'REST API',
    fields: { host: 'host', ...LEVEL },
    columns: [LEVEL_COLUMN],
  },
  pooler: {
    color: 'chart-gray',
    title: 'Pooler',
    fields: { host: 'host', ...LEVEL },
    columns: [LEVEL_COLUMN],
  },
};

/** Such as "edge requests" or "Postgres records". */
export function nameRecords(kindName: string, count: number): string {
  const { title } = findKind(kindName);
  const names = / requests$/.test(title)
    ? title.charAt(0).toLowerCase() + title.slice(1)
    : `${kindName === ALL_KINDS ? 'log' : title} records`;
  return count === 1 ? names.slice(0, -1) : names;
}

/** Such as "2 edge requests". */
export const formatKindCount = (kindName: string, count: number): string =>
  `${formatCount(count)} ${nameRecords(kindName, count)}`;

/** A kind that this console does not know has a list without columns of its own. */
export function findKind(name: string): LogKind {
  return KINDS[name] ?? { title: name, color: 'chart-gray', fields: {}, columns: [] };
}

/** The kind of a record, also in a list of all kinds. */
export const readKind = (record: Row): LogKind => findKind(String(record['kind']));

export function listFields({ fields }: LogKind): FieldName[] {
  return Object.keys(fields) as FieldName[];
}

const ERROR_LEVELS = ['error', 'fatal', 'panic', 'critical', 'alert', 'emergency'];

/** The search expression for the errors of a kind, as logs.top counts them. */
export function toErrorQuery(kindName: string): string {
  const fields = listFields(findKind(kindName));
  const terms = [
    ...(fields.includes('status') ? ['status:>=500'] : []),
    ...(fields.includes('level') ? ERROR_LEVELS.map(level => `level:${level}`) : []),
  ];
  return terms.length > 1 ? `(${terms.join(' OR ')})` : terms.join();
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
