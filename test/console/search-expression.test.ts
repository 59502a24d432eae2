import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addTerm,
  findTermAt,
  formatTerm,
  parseTerms,
  toPhrase,
  toTerm,
} from '../../console/logs/search-expression.ts';
import { LOG_FIELDS } from '../../src/domain/log-fields.ts';
import { parseSearchExpression } from '../../src/endpoint/search-expression.ts';

const terms = fc.record({
  field: fc.constantFrom(undefined, 'method', 'path', 'host', 'function', 'level'),
  value: fc.string({ minLength: 1, unit: fc.constantFrom(...'aZ9 "\\-:*/.é😀') }),
  isExcluded: fc.boolean(),
});

describe('terms that the console adds to a search expression', () => {
  test('the server and the console read every added term as the console wrote it', () => {
    fc.assert(
      fc.property(fc.array(terms, { minLength: 1, maxLength: 4 }), added => {
        const expression = added.map(formatTerm).join(' ');
        const expected = added.map(({ field, value, isExcluded }) => ({ field, value, isExcluded }));
        const onServer = parseSearchExpression(expression, LOG_FIELDS).map(
          ({ field, literals, isExcluded }) => ({
            field,
            value: literals.join('*'),
            isExcluded,
          }),
        );
        expect(onServer).toEqual(expected);
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
      'timeout "two  words" -path:/a -status:503',
    );
    expect(addTerm('', term)).toBe('-status:503');
  });

  test('the term at the caret is the one that the user is typing', () => {
    const expression = 'foo status:5 "a b';
    expect(findTermAt(expression, 12)).toMatchObject({ field: 'status', value: '5', start: 4, end: 12 });
    expect(findTermAt(expression, 16)).toMatchObject({ field: undefined, value: 'a b' });
    expect(findTermAt(expression, 4)).toBeUndefined();
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
    expect(parseSearchExpression(formatTerm(term), LOG_FIELDS)[0]?.literals).toEqual([start, '']);
    expect(addTerm(formatTerm(term), { ...term, isExcluded: false })).toBe(`path:${start}*`);
  });

  test('a pattern ends before a character that needs quotes, because an asterisk in quotes is no wildcard', () => {
    expect(formatTerm(toTerm('path', `/items,${long}`, false))).toBe('path:/items*');
    expect(toTerm('path', `"${long}"`, false)).toMatchObject({ field: undefined });
  });
});

test('a path is searched without its query string, and a query string alone as a phrase', () => {
  expect(formatTerm(toTerm('path', '/items?q=1?2', false))).toBe('path:/items');
  expect(formatTerm(toTerm('path', `/items?q=${'x'.repeat(600)}`, false))).toBe('path:/items');
  expect(formatTerm(toTerm('path', '?q=1', false))).toBe('"?q=1"');
  expect(formatTerm(toTerm('host', 'a?b', false))).toBe('host:"a?b"');
});
