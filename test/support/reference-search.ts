// Reference implementation of search expressions on an array of records, and random records and expressions. Written
// independently of the parser and of the SQL, to be obviously correct and not fast.
import fc from 'fast-check';
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { EdgeFields, FunctionEdgeFields, LogRecord } from '../../src/domain/log-record.ts';
import { edgeRecord, functionEdgeRecord, record } from './record.ts';

/** A term of an expression. In `value`, undefined is a wildcard. */
export type Term =
  | { readonly excluded: boolean; readonly word: string }
  | { readonly excluded: boolean; readonly field: string; readonly value: readonly (string | undefined)[] };

export function formatExpression(terms: readonly Term[]): string {
  return terms.map(term => (term.excluded ? '-' : '') + formatTerm(term)).join(' ');
}

function formatTerm(term: Term): string {
  if ('word' in term) return /^[^\s"*:-][^\s":]*$/u.test(term.word) ? term.word : quote(term.word);
  const isPlain = term.value.every(part => part === undefined || /^[^\s"*]+$/u.test(part));
  const text = term.value.map(part => part ?? '*').join('');
  return `${term.field}:${isPlain ? text : quote(text)}`;
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

export function matchesExpression(kind: LogKind, log: LogRecord, terms: readonly Term[]): boolean {
  const fields = new Set(terms.flatMap(term => ('field' in term && !term.excluded ? [term.field] : [])));
  return (
    terms.every(
      term => ('field' in term && !term.excluded) || matchesTerm(kind, log, term) !== term.excluded,
    ) &&
    [...fields].every(field =>
      terms.some(
        term => 'field' in term && term.field === field && !term.excluded && matchesTerm(kind, log, term),
      ),
    )
  );
}

function matchesTerm(kind: LogKind, log: LogRecord, term: Term): boolean {
  if ('word' in term) return contains(log.eventMessage, term.word) || containsInJson(log.metadata, term.word);
  const actual = readField(kind, log, term.field);
  if (actual === undefined) return false;
  if (term.field === 'status') return isSameStatus(actual, term.value.join(''));
  const pattern = term.value.map(part => (part === undefined ? '.*' : escapePattern(part))).join('');
  return new RegExp(`^${pattern}$`, 'isu').test(actual);
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
export const SYNTAX = [...'"\\-:* aé🦕([\n+?^$|\';%_', 'status:', 'path:', 'level:', '5xx', '{2}'];

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

/** Creates a record of the kind at the given time. */
export const recordDraft = fc
  .record({
    ...{ message: text(0, 12), note: text(0, 12), status, method: scalar, host: scalar, level: scalar },
    ...{ path: fc.constantFrom(...PATHS), isEscaped: fc.boolean(), shape: fc.constantFrom(...SHAPES) },
  })
  .map(
    ({ message, note, status: code, method, host, level, path, isEscaped, shape }) =>
      (kind: SearchedKind, options: { id: string; at: bigint; project: string }) => {
        const common = { ...options, message };
        const metadata = (fields: object) => json({ note, ...reshape(fields, shape) }, isEscaped);
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

export function expressionOf(kind: SearchedKind): fc.Arbitrary<readonly Term[]> {
  const excluded = fc.integer({ min: 0, max: 3 }).map(number => number === 0);
  const word = fc.record({ excluded, word: text(1, 2) });
  const valuePart = fc.oneof(
    fc.constantFrom(...METHODS, ...PATHS.filter(path => path !== ''), '7', '-3', 'null'),
    text(1, 2),
  );
  const value = fc.oneof(
    valuePart.map(part => [part]),
    fc.constantFrom('/', 'p', 'a').map(part => [part, undefined]),
    fc.constantFrom('b', 'T').map(part => [undefined, part]),
    fc.constant([undefined]),
  );
  const fieldTerm = fc.record({
    excluded,
    field: fc.constantFrom(...FIELDS[kind].filter(field => field !== 'status')),
    value,
  });
  const statusTerm = fc.record({
    excluded,
    field: fc.constant('status'),
    value: fc.constantFrom(['200'], ['5xx'], ['503'], ['1xx']),
  });
  return fc.array(fc.oneof({ weight: 3, arbitrary: word }, { weight: 2, arbitrary: fieldTerm }, statusTerm), {
    maxLength: 4,
  });
}
