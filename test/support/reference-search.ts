// Reference implementation of search expressions on an array of records, and random records and expressions. Written
// independently of the parser and of the SQL, to be obviously correct and not fast.
import fc from 'fast-check';
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { EdgeFields, FunctionEdgeFields, LogRecord } from '../../src/domain/log-record.ts';
import { edgeRecord, functionEdgeRecord, record } from './record.ts';

/** In `value`, undefined is a wildcard. */
export type Expression =
  | { readonly all: readonly Expression[] }
  | { readonly any: readonly Expression[] }
  | { readonly not: Expression }
  | { readonly word: string }
  | { readonly field: string; readonly value: readonly (string | undefined)[] }
  | { readonly field: string; readonly operator: '>' | '>=' | '<' | '<='; readonly number: number }
  | { readonly field: string; readonly range: readonly [from: number, to: number] }
  | { readonly field: string; readonly exists: true };

/** With parentheses around all lists but the outermost. */
export function formatExpression(expression: Expression, isOuter = true): string {
  const inParentheses = (text: string) => (isOuter ? text : `(${text})`);
  const formatEach = (list: readonly Expression[]) => list.map(each => formatExpression(each, false));
  if ('all' in expression) return inParentheses(formatEach(expression.all).join(' '));
  if ('any' in expression) return inParentheses(formatEach(expression.any).join(' OR '));
  if ('not' in expression) return `-${formatExpression(expression.not, false)}`;
  if ('word' in expression) {
    const isPlain = /^[^\s"*:()<>=~!&|-][^\s"*:()<>=~&|]*$/u.test(expression.word);
    return isPlain && !/^(OR|AND|NOT)$/.test(expression.word) ? expression.word : quote(expression.word);
  }
  const { field } = expression;
  if ('exists' in expression) return `exists:${field}`;
  if ('operator' in expression) return `${field}:${expression.operator}${expression.number}`;
  if ('range' in expression) return `${field}:${expression.range.join('..')}`;
  const isPlain = expression.value.every(part => part === undefined || /^(?!:)[^\s"*()<>.]+$/u.test(part));
  const text = expression.value.map(part => part ?? '*').join('');
  return `${field}:${isPlain ? text : quote(text)}`;
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** Of several values of a field in a list, one must match. */
export function matchesExpression(kind: LogKind, log: LogRecord, expression: Expression): boolean {
  const matches = (each: Expression) => matchesExpression(kind, log, each);
  if ('all' in expression) {
    const values = expression.all.filter(each => 'value' in each);
    return (
      expression.all.filter(each => !('value' in each)).every(matches) &&
      values.every(({ field }) => values.filter(each => each.field === field).some(matches))
    );
  }
  if ('any' in expression) return expression.any.some(matches);
  if ('not' in expression) return !matches(expression.not);
  if ('word' in expression)
    return contains(log.eventMessage, expression.word) || containsInJson(log.metadata, expression.word);
  const actual = readValue(kind, log, expression.field);
  if ('exists' in expression) return actual !== undefined;
  if (actual === undefined || typeof actual === 'object') return false;
  if ('value' in expression) return matchesValue(actual, expression);
  if (!/^-?\d+(\.\d+)?$/.test(String(actual))) return false;
  const number = Number(actual);
  if ('range' in expression) return number >= expression.range[0] && number <= expression.range[1];
  const { operator, number: bound } = expression;
  return { '>': number > bound, '>=': number >= bound, '<': number < bound, '<=': number <= bound }[operator];
}

function matchesValue(
  actual: string | number | boolean,
  { field, value }: Extract<Expression, { value: unknown }>,
): boolean {
  const text = value.map(part => part ?? '*').join('');
  if (field === 'status') return isSameStatus(String(actual), text);
  if (typeof actual === 'number' && !value.includes(undefined))
    return /^-?\d+(\.\d+)?$/.test(text) && Number(text) === actual;
  const pattern = value.map(part => (part === undefined ? '.*' : escapePattern(part))).join('');
  return new RegExp(`^${pattern}$`, 'isu').test(String(actual));
}

/** The value of any field; undefined: there is none. */
function readValue(
  kind: LogKind,
  log: LogRecord,
  field: string,
): string | number | boolean | object | undefined {
  const { path: _, ...extracted } = log.extracted as Record<string, unknown>; // the field path has no query string
  const columns: Record<string, unknown> = { kind, id: log.id, project: log.project, ...extracted };
  if (field in columns) return (columns[field] || undefined) as string | undefined;
  if (!field.includes('.') && field !== 'function_id') return readField(kind, log, field);
  const keys = (field.replace(/^metadata\./, '').match(/"(?:\\.|[^"])*"|[^.]+/g) ?? []).map(key =>
    key.startsWith('"') ? JSON.parse(key) : key,
  );
  const metadata = JSON.parse(log.metadata);
  const unwrap = (value: unknown) => (Array.isArray(value) && value.length === 1 ? value[0] : undefined);
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const step = (value: unknown, key: string) =>
    isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  const nested = keys.reduce<unknown>(step, metadata);
  const wrapped = keys.reduce<unknown>(
    (value, key, i) => step(i === 0 ? value : unwrap(value), key),
    metadata,
  );
  const value = [nested, wrapped, step(metadata, keys.join('.'))].find(each => each !== undefined);
  return value === null || value === '' ? undefined : (value as string);
}

function isSameStatus(actual: string, expected: string): boolean {
  return expected.endsWith('xx') ? actual[0] === expected[0] : actual === expected;
}

function contains(text: string, word: string): boolean {
  return new RegExp(escapePattern(word), 'iu').test(text);
}

/** Each character of the word is in the JSON as it is, or as an escape. */
function containsInJson(json: string, word: string): boolean {
  const characters = [...word];
  const matchesAt = (position: number, index: number): boolean => {
    const expected = characters[index];
    if (expected === undefined) return true;
    return readCharacters(json, position, expected).some(
      ([actual, length]) => contains(actual, expected) && matchesAt(position + length, index + 1),
    );
  };
  return Array.from({ length: json.length }, (_, position) => position).some(start => matchesAt(start, 0));
}

/** The characters that a position can stand for, and how long each is in the JSON. */
function readCharacters(json: string, position: number, expected: string): [string, number][] {
  const rest = json.slice(position);
  const [literal = ''] = rest;
  const found: [string, number][] = literal === '' ? [] : [[literal, literal.length]];
  const [escaped] = /^\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u.{4}|["\\/bfnrt])/.exec(rest) ?? [];
  if (escaped !== undefined && !/[a-z0-9 ]/i.test(expected))
    found.push([JSON.parse(`"${escaped}"`), escaped.length]);
  return found;
}

export function readField(kind: LogKind, log: LogRecord, field: string): string | undefined {
  const metadata = JSON.parse(log.metadata);
  /** The values of a field, best first: in an object, which may be the only item of an array, and in a flat attribute. */
  const within = (name: string, field: string) => {
    const outer = metadata[name];
    const object = Array.isArray(outer) && outer.length === 1 ? outer[0] : outer;
    return [object?.[field], metadata[`${name}.${field}`]].map(value =>
      Array.isArray(value) ? null : value,
    );
  };
  const edge = log.extracted as EdgeFields;
  const functionEdge = log.extracted as FunctionEdgeFields;
  const places: Record<string, Record<string, unknown>> = {
    edge: {
      status: within('response', 'status_code'),
      method: within('request', 'method'),
      path: edge.path,
      host: within('request', 'host'),
    },
    function_edge: {
      status: functionEdge.status_code,
      method: within('request', 'method'),
      path: within('request', 'pathname'),
      host: within('request', 'host'),
      function: functionEdge.function_id,
    },
    storage: {
      status: within('res', 'statusCode'),
      method: within('req', 'method'),
      path: within('req', 'url'),
      host: within('req', 'hostname'),
      level: metadata.level,
    },
  };
  const texts = [places[kind]?.[field]]
    .flat()
    .map(value => (Number.isSafeInteger(value) && Math.abs(value as number) < 1e15 ? String(value) : value))
    .filter(value => typeof value === 'string' && value !== '')
    .filter(value => field !== 'status' || /^[1-5]\d\d$/.test(value as string)) as string[];
  return field === 'path' ? texts[0]?.replace(/\?.*/s, '') || undefined : texts[0];
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

// Few different characters, so that words often occur. Some fold in unusual ways: the Kelvin sign to k, long s to s, both sigmas.
const CHARACTERS = [...'aBkSéÉ\u212aſσςİıß🦕7 "\\/<\n.*(%_-:{'];
const text = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(...CHARACTERS), { minLength, maxLength }).map(parts => parts.join(''));

const METHODS = ['GET', 'POST', 'é', 'post'];
const PATHS = ['/a', '/A/b', '/a b', '/é*', '', '/a\nb', '/a?b=/A/b', '/a?\n?', '?a'];
const status = fc.constantFrom(200, '200', 503, '5030', 500.5, null, true, '', 99, { a: 1 });
const scalar = fc.oneof(
  fc.constantFrom(...METHODS, 7, -3, 1.5, 1234567890123456, null, true, ''),
  fc.constant({ a: ['x'] }),
);

/** Some senders escape characters that they need not escape. */
const json = (value: unknown, isEscaped: boolean) => {
  const plain = JSON.stringify(value);
  return isEscaped
    ? plain
        .replace(/[<éÉ?]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
        .replaceAll('/', '\\/')
        .replaceAll(':503', ':503.0')
    : plain;
};

/** Texts with a meaning in search expressions, in regular expressions or in SQL. */
export const SYNTAX = [
  ...'"\\-:* aé🦕([\n+?^$|\';%_',
  'status:',
  'path:',
  'level:',
  '5xx',
  '{2}',
  ')',
  ' OR ',
  '>=5',
  '..',
  'a.b:',
  'a."b/',
  ' or ',
  'exists:',
];

export const SEARCHED_KINDS = ['edge', 'function_edge', 'storage'] as const;
export type SearchedKind = (typeof SEARCHED_KINDS)[number];

/** How senders write an object: as it is, in an array, in an array next to others, flat, or as two of these. */
const SHAPES = ['nested', 'nested', 'wrapped', 'twice', 'pair', 'flat', 'both', 'flat beside'] as const;
function reshape(fields: object, shape: (typeof SHAPES)[number]): object {
  const reshaped = Object.entries(fields).map(([name, value]) => {
    if (typeof value !== 'object' || value === null) return { [name]: value };
    const flat = Object.fromEntries(Object.entries(value).map(([key, item]) => [`${name}.${key}`, item]));
    const other = Object.fromEntries(Object.keys(value).map(key => [`${name}.${key}`, 'GET']));
    const shapes = {
      ...{ nested: { [name]: value }, wrapped: { [name]: [value] }, twice: { [name]: [[value]] } },
      ...{ pair: { [name]: [value, null] }, flat, both: { [name]: value, ...other } },
      'flat beside': { [name]: [], ...flat },
    };
    return shapes[shape];
  });
  return Object.assign({}, ...reshaped);
}

const ODD_KEY = 'a.b/é "[0]';

/** A path of three keys and one of two, in the same shapes. */
function createExtra({ n, x, shape }: { n: unknown; x: unknown; shape: string }): object {
  if (shape === 'nested') return { extra: { n, [ODD_KEY]: n, deep: { x } } };
  if (shape === 'wrapped') return { extra: [{ n, [ODD_KEY]: n, deep: [{ x }] }] };
  return shape === 'flat' ? { 'extra.n': n, [`extra.${ODD_KEY}`]: n, 'extra.deep.x': x } : {};
}

/** Creates a record of the kind at the given time. */
export const recordDraft = fc
  .record({
    ...{ message: text(0, 12), note: text(0, 12), status, method: scalar, host: scalar, level: scalar },
    ...{ path: fc.constantFrom(...PATHS), isEscaped: fc.boolean(), shape: fc.constantFrom(...SHAPES) },
    extra: fc.record({ n: scalar, x: scalar, shape: fc.constantFrom('nested', 'wrapped', 'flat', 'none') }),
  })
  .map(
    ({ message, note, status: code, method, host, level, path, isEscaped, shape, extra }) =>
      (kind: SearchedKind, options: { id: string; at: bigint; project: string }) => {
        const common = { ...options, message };
        const metadata = (fields: object) =>
          json({ note, ...createExtra(extra), ...reshape(fields, shape) }, isEscaped);
        if (kind === 'edge')
          return {
            ...edgeRecord({ ...common, path }),
            metadata: metadata({ request: { method, host }, response: { status_code: code } }),
          };
        if (kind === 'storage')
          return {
            ...record(common),
            metadata: metadata({
              req: { method, hostname: host, url: path },
              res: { statusCode: code },
              level,
            }),
          };
        const statusCode = typeof code === 'number' && Number.isInteger(code) ? code : null;
        return {
          ...functionEdgeRecord({ ...common, functionId: String(host), status: statusCode }),
          metadata: metadata({ request: { method, pathname: path, host } }),
        };
      },
  );

const FIELDS: Record<SearchedKind, readonly string[]> = {
  edge: ['status', 'method', 'path', 'host'],
  function_edge: ['status', 'method', 'path', 'host', 'function'],
  storage: ['status', 'method', 'path', 'host', 'level'],
};

const PATHS_IN_METADATA = [
  ...['metadata.note', 'metadata.level', 'request.method', 'extra.deep.x', 'extra.n'],
  `extra.${JSON.stringify(ODD_KEY)}`,
];

/** `all`: an expression for all kinds together. */
export function expressionOf(kind: SearchedKind | 'all'): fc.Arbitrary<Expression> {
  const fields = kind === 'all' ? Object.values(FIELDS).flat() : FIELDS[kind];
  const word = fc.record({ word: text(1, 2) });
  const valuePart = fc.oneof(
    fc.constantFrom(...METHODS, ...PATHS.filter(path => path !== ''), '7', '-3', '1.50', 'true', 'null'),
    text(1, 2),
  );
  const value = fc.oneof(
    valuePart.map(part => [part]),
    fc.constantFrom('/', 'p', 'a').map(part => [part, undefined]),
    fc.constantFrom('b', 'T').map(part => [undefined, part]),
    fc.constant([undefined]),
  );
  const others = fields.filter(field => field !== 'status');
  const field = fc.constantFrom(...others, ...PATHS_IN_METADATA, 'id', 'function_id');
  const fieldTerm = fc.record({ field, value });
  const statusTerm = fc.record({
    field: fc.constant('status'),
    value: fc.constantFrom(['200'], ['5xx'], ['503'], ['1xx']),
  });
  const kindTerm = fc.record({
    field: fc.constant('kind'),
    value: fc.constantFrom(['edge'], ['storage'], ['e', undefined], [undefined, 'E']),
  });
  const numberField = fc.constantFrom('status', 'metadata.level', 'extra.deep.x', 'extra.n', 'metadata.note');
  const number = fc.constantFrom(-3, 0, 1.5, 7, 300, 503);
  const comparison = fc.record({
    ...{ field: numberField, number },
    operator: fc.constantFrom('>' as const, '>=' as const, '<' as const, '<=' as const),
  });
  const range = fc.record({
    field: numberField,
    range: fc.constantFrom<[number, number]>([-3, 7], [1.5, 1.5], [200, 503]),
  });
  const exists = fc.record({
    field: fc.oneof(field, fc.constant('extra.deep')),
    exists: fc.constant(true as const),
  });
  const term: fc.Arbitrary<Expression> = fc.oneof(
    { weight: 4, arbitrary: word },
    { weight: 4, arbitrary: fieldTerm },
    ...[statusTerm, kindTerm, comparison, range, exists],
  );
  const not = (each: fc.Arbitrary<Expression>) =>
    fc.oneof({ weight: 3, arbitrary: each }, { weight: 1, arbitrary: fc.record({ not: each }) });
  const list = (each: fc.Arbitrary<Expression>, minLength: number): fc.Arbitrary<Expression> => {
    const terms = fc.array(not(each), { minLength, maxLength: 3 });
    return fc.oneof(
      terms.map(all => ({ all })),
      fc.array(not(each), { minLength: 1, maxLength: 3 }).map(any => ({ any })),
    );
  };
  return list(fc.oneof({ weight: 3, arbitrary: term }, { weight: 1, arbitrary: list(term, 1) }), 0);
}
