import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addTerm,
  findTermAt,
  formatTerm,
  parseTerms,
  removeTerm,
  toggleTerm,
  toPhrase,
  toTerm,
  withoutField,
} from '../../console/logs/search-expression.ts';
import { LOG_FIELDS } from '../../src/domain/log-fields.ts';
import { parseSearchExpression } from '../../src/endpoint/search-expression.ts';
import type { Condition } from '../../src/store/condition.ts';

const terms = fc.record({
  field: fc.constantFrom(undefined, 'method', 'path', 'host', 'function', 'level', 'a.b.C'),
  value: fc.string({ minLength: 1, unit: fc.constantFrom(...'aZ9 "\\-:*/.é😀()<>=ORANDor') }),
  isExcluded: fc.boolean(),
});

/** The terms of a condition, without the structure. */
function listTerms(condition: Condition, isExcluded = false): object[] {
  if ('all' in condition) return condition.all.flatMap(each => listTerms(each, isExcluded));
  if ('any' in condition) return condition.any.flatMap(each => listTerms(each, isExcluded));
  if ('not' in condition) return listTerms(condition.not, true);
  if ('contains' in condition) return [{ field: undefined, value: condition.contains, isExcluded }];
  if (!('matches' in condition)) throw new Error('the console adds no such term');
  const { field, matches } = condition;
  const name =
    'searchable' in field ? field.searchable : 'path' in field ? field.path.join('.') : field.column;
  return [{ field: name, value: matches.join('*'), isExcluded }];
}

const sort = (terms: readonly object[]) => terms.map(term => JSON.stringify(term)).sort();

describe('terms that the console adds to a search expression', () => {
  test('the server and the console read every added term as the console wrote it', () => {
    fc.assert(
      fc.property(fc.array(terms, { minLength: 1, maxLength: 4 }), added => {
        const expression = added.map(formatTerm).join(' ');
        const expected = added.map(({ field, value, isExcluded }) => ({ field, value, isExcluded }));
        expect(sort(listTerms(parseSearchExpression(expression, LOG_FIELDS)))).toEqual(sort(expected));
        const here = parseTerms(expression).map(({ field, value, isExcluded }) => ({
          field,
          value,
          isExcluded,
        }));
        expect(here).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  test('an added term replaces its opposite and keeps the other terms as they are', () => {
    const term = { field: 'status', value: '503', isExcluded: true };
    expect(addTerm('  timeout  "two  words" status:503 -path:/a', term)).toBe(
      'timeout  "two  words" -path:/a -status:503',
    );
    expect(addTerm('', term)).toBe('-status:503');
  });

  test('the term at the caret is the one that the user is typing', () => {
    const expression = 'foo status:5 "a b';
    expect(findTermAt(expression, 12)).toMatchObject({ field: 'status', value: '5', start: 4, end: 12 });
    expect(findTermAt(expression, 16)).toMatchObject({ field: undefined, value: 'a b' });
    expect(findTermAt(expression, 4)).toBeUndefined();
  });

  test.each([
    ['a OR b', '(a OR b) -status:503'],
    ['(a OR status:503) c', '(a OR status:503) c -status:503'],
    ['-(a OR b) status:503', '-(a OR b) -status:503'],
    ['"a OR b"', '"a OR b" -status:503'],
  ])('a term that is added to %s must match too', (expression, expected) => {
    const term = { field: 'status', value: '503', isExcluded: true };
    expect(addTerm(expression, term)).toBe(expected);
    expect(parseSearchExpression(expected, LOG_FIELDS)).toMatchObject({
      all: expect.arrayContaining([{ not: expect.objectContaining({ matches: ['503'] }) }]),
    });
  });

  test('the term at the caret can be in parentheses', () => {
    const expression = 'a (status:5 OR -(b method:p))';
    expect(findTermAt(expression, 11)).toMatchObject({ field: 'status', value: '5', start: 3, end: 11 });
    expect(findTermAt(expression, 27)).toMatchObject({ field: 'method', value: 'p', start: 19, end: 27 });
  });

  test('the values of a term are those of the other terms, unless it is one of several alternatives', () => {
    const remove = (expression: string, caret: number) => {
      const term = findTermAt(expression, caret);
      return term && removeTerm(expression, term);
    };
    expect(remove('(a OR b) status:5 c', 17)).toBe('(a OR b) c');
    expect(remove('a OR status:5', 13)).toBe('');
    expect(remove('a (b OR status:5)', 16)).toBe('');
  });

  test('a phrase is the longest line of a value, of at most 128 characters', () => {
    expect(toPhrase('short\n  the longest line \r\nend')).toBe('the longest line');
    expect([...toPhrase('😀'.repeat(300))].length).toBe(128);
  });
});

describe('terms for long values', () => {
  const long = `/${'y'.repeat(600)}`;
  const start = long.slice(0, 128);

  test('the value of a field is found by its beginning', () => {
    const term = toTerm('path', long, true);
    expect(formatTerm(term)).toBe(`-path:${start}*`);
    expect(parseSearchExpression(formatTerm(term), LOG_FIELDS)).toMatchObject({
      not: { matches: [start, ''] },
    });
    expect(addTerm(formatTerm(term), { ...term, isExcluded: false })).toBe(`path:${start}*`);
  });

  test('a pattern ends before a character that needs quotes, because an asterisk in quotes is no wildcard', () => {
    expect(formatTerm(toTerm('path', `/items,${long}`, false))).toBe('path:/items*');
    expect(toTerm('path', `"${long}"`, false)).toMatchObject({ field: undefined });
  });
});

test('a value of several lines, and a long value of a path, are searched as a phrase', () => {
  expect(formatTerm(toTerm('parsed.query', 'select 1\n  / 0', false))).toBe('"select 1"');
  expect(toTerm('parsed.query', 'x'.repeat(600), false)).toMatchObject({ field: undefined });
  expect(formatTerm(toTerm('parsed.query', 'select 1', false))).toBe('parsed.query:"select 1"');
});

test('a path is searched without its query string, and a query string alone as a phrase', () => {
  expect(formatTerm(toTerm('path', '/items?q=1?2', false))).toBe('path:/items');
  expect(formatTerm(toTerm('path', `/items?q=${'x'.repeat(600)}`, false))).toBe('path:/items');
  expect(formatTerm(toTerm('path', '?q=1', false))).toBe('"?q=1"');
  expect(formatTerm(toTerm('host', 'a?b', false))).toBe('host:"a?b"');
});

test('a value is added, and removed again, but not if it is one of several alternatives', () => {
  const term = { field: 'status', value: '500', isExcluded: false };
  expect(toggleTerm('timeout', term)).toBe('timeout status:500');
  expect(toggleTerm('timeout status:500', term)).toBe('timeout');
  expect(toggleTerm('-status:500', term)).toBe('status:500');
  expect(toggleTerm('a OR status:500', term)).toBe('(a OR status:500) status:500');
});

test('the values of a field are listed without its own terms, unless they are one of several alternatives', () => {
  expect(withoutField('a status:500 -status:404 path:/x', 'status')).toBe('a path:/x');
  expect(withoutField('a OR status:500', 'status')).toBe('a OR status:500');
  expect(withoutField('(a OR status:500) status:404', 'status')).toBe('(a OR status:500)');
});
