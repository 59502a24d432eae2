import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type FieldPlaces,
  findField,
  findRequestIds,
  listPaths,
  readPath,
  readPathText,
  toKeys,
} from '../../console/logs/record-fields.ts';
import { parseTerms } from '../../console/logs/search-expression.ts';
import { LOG_FIELDS } from '../../src/domain/log-fields.ts';
import { parseSearchExpression } from '../../src/endpoint/search-expression.ts';

const EDGE = { status: 'response.status_code', method: 'request.method' };
const LEVEL = { level: 'level' };

const nameOf = (metadata: object, path: readonly string[], places: FieldPlaces = {}, value = 'x') =>
  findField(places, metadata, path, value);

describe('the field of a value in the metadata', () => {
  test('it is the short name if the kind has one, otherwise the path', () => {
    const metadata = { request: [{ method: 'GET' }], response: { status_code: 'x' }, trace_id: 'x' };
    expect(nameOf(metadata, ['request', '0', 'method'], EDGE)).toBe('method');
    expect(nameOf(metadata, ['request', '0', 'method'], {})).toBe('request.method');
    expect(nameOf(metadata, ['response', 'status_code'], EDGE, '503')).toBe('status');
    expect(nameOf(metadata, ['response', 'status_code'], EDGE, 'x')).toBe('response.status_code');
    expect(nameOf(metadata, ['trace_id'])).toBe('trace_id');
  });

  test('a key at the top, a digit in front and the key metadata need the prefix metadata', () => {
    expect(nameOf({ a: 'x' }, ['a'])).toBe('metadata.a');
    expect(nameOf({ '1a': { b: 'x' } }, ['1a', 'b'])).toBe('metadata.1a.b');
    expect(nameOf({ metadata: { b: 'x' } }, ['metadata', 'b'])).toBe('metadata.metadata.b');
    expect(nameOf({ 'http.method': 'x' }, ['http.method'])).toBe('http.method');
  });

  test('a key with other characters, and a nested key with dots, is in quotes', () => {
    expect(nameOf({ 'a b': 'x' }, ['a b'])).toBe('metadata."a b"');
    expect(nameOf({ a: { 'b.c/"d"': 'x' } }, ['a', 'b.c/"d"'])).toBe('a."b.c/\\"d\\""');
  });

  test('there is none for empty keys, and for items of arrays', () => {
    expect(nameOf({ a: { '': 'x' } }, ['a', ''])).toBeUndefined();
    expect(nameOf({ a: ['x'] }, ['a', '0'])).toBeUndefined();
    expect(nameOf({ a: { b: [{ c: 'x' }] } }, ['a', 'b', '0', 'c'])).toBeUndefined();
    expect(nameOf({ a: [{ b: 'x' }, { b: 'y' }] }, ['a', '0', 'b'])).toBeUndefined();
  });

  test('the server reads the name as the path of the value', () => {
    const keys = fc.array(fc.string({ minLength: 1, unit: fc.constantFrom(...'aZ_-0. /"\\\\é:') }), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(keys, path => {
        const metadata = path.reduceRight<unknown>((value, key) => ({ [key]: value }), 'x') as object;
        const name = nameOf(metadata, path);
        if (name === undefined) return;
        const condition = parseSearchExpression(`${name}:x`, LOG_FIELDS);
        const read = 'matches' in condition && 'path' in condition.field ? condition.field.path : [];
        expect(read.join('.')).toBe(path.join('.'));
        expect(parseTerms(`${name}:x`)).toMatchObject([{ field: name, value: 'x' }]);
        expect(readPath(metadata, read) ?? readPath(metadata, [read.join('.')])).toBe('x');
        expect(readPathText({ metadata }, name)).toBe('x');
        expect(toKeys(metadata, path)).toEqual(path);
      }),
      { numRuns: 500 },
    );
  });
});

test('the paths of records are listed once, without those that have a short name', () => {
  const metadata = { level: 'info', user: { id: 1, name: null }, tags: ['a'], list: [{ b: 1 }] };
  const paths = listPaths([{ metadata }, { metadata }], () => LEVEL);
  expect(paths).toEqual(['list.b', 'user.id', 'user.name']);
});

test('the ids of a request are found at any depth, each value once', () => {
  const metadata = {
    request: { headers: [{ 'x-request-id': 'r-1', cf_ray: '8f3' }] },
    trace_id: 'r-1',
    SB_REQUEST_ID: 7,
    request_id: null,
    id: 'no',
  };
  expect([...findRequestIds(metadata)]).toEqual([
    ['r-1', 'x-request-id'],
    ['8f3', 'cf_ray'],
    ['7', 'SB_REQUEST_ID'],
  ]);
});
