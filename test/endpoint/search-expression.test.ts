import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LOG_FIELDS } from '../../src/domain/log-fields.ts';
import { parseSearchExpression, SearchSyntaxError } from '../../src/endpoint/search-expression.ts';
import { bindSearchTerms } from '../../src/endpoint/search-patterns.ts';
import { SYNTAX } from '../support/reference-search.ts';

const parse = (text: string) => parseSearchExpression(text, LOG_FIELDS);
const problemOf = (text: string, fields = LOG_FIELDS as readonly (typeof LOG_FIELDS)[number][]) => {
  try {
    parseSearchExpression(text, fields);
  } catch (error) {
    if (!(error instanceof SearchSyntaxError)) throw error;
    const { message } = error;
    return { message, position: Number(/ at character (\d+)/.exec(message)?.[1]) };
  }
  return undefined;
};
const word = (text: string, isExcluded = false) => ({ field: undefined, literals: [text], isExcluded });

describe('a search expression', () => {
  test.each([
    ['', []],
    [' \t\n ', []],
    ['one two', [word('one'), word('two')]],
    ['"a phrase" -"not this" -nor', [word('a phrase'), word('not this', true), word('nor', true)]],
    ['"say \\"hi\\"" "C:\\\\temp" "a\\b"', [word('say "hi"'), word('C:\\temp'), word('a\\b')]],
    ['12:30:01 10.0.0.1:80', [word('12:30:01'), word('10.0.0.1:80')]],
    ['a-b --x', [word('a-b'), word('-x', true)]],
    ['status:5XX', [{ field: 'status', literals: ['5xx'], isExcluded: false }]],
    ['-STATUS:503', [{ field: 'status', literals: ['503'], isExcluded: true }]],
    ['path:/rest/*/items**', [{ field: 'path', literals: ['/rest/', '/items', ''], isExcluded: false }]],
    ['path:"/a b*"', [{ field: 'path', literals: ['/a b*'], isExcluded: false }]],
    ['🦕'.repeat(128), [word('🦕'.repeat(128))]],
    [`path:${'a'.repeat(1000)}`, [{ field: 'path', literals: ['a'.repeat(1000)], isExcluded: false }]],
    ['host:a:80', [{ field: 'host', literals: ['a:80'], isExcluded: false }]],
  ])('%j is parsed into its terms', (text, terms) => {
    expect(parse(text)).toEqual(terms);
  });

  test.each([
    ['ok "open', 'the quote is not closed at character 4', 4],
    ['🦕 "open', 'the quote is not closed at character 3', 3],
    ['a ""', 'the phrase is empty at character 3', 3],
    ['path:""', 'the value is empty at character 6', 6],
    ['a"b"', 'a quote is inside a word at character 2', 2],
    ['path:a"b"', 'a quote is inside a value at character 7', 7],
    ['"a"b', 'a space must follow the closing quote at character 4', 4],
    ['a - b', 'a word, a phrase or a field must follow the - at character 3', 3],
    ['a -', 'a word, a phrase or a field must follow the - at character 3', 3],
    ['path: x', 'path: has no value at character 6', 6],
    ['x https://a', 'there is no field https at character 3', 3],
    ['status:600', 'the value of status is not a status code at character 8', 8],
    ['status:5*', 'the value of status is not a status code at character 8', 8],
    ['path:*a*b*c*d*', 'the value has more than 4 wildcards (*) at character 6', 6],
    [`a ${'é'.repeat(129)}`, 'the word or phrase at character 3 is too long: at most 128 characters', 3],
    [`-"${'a '.repeat(65)}"`, 'the word or phrase at character 1 is too long', 1],
    [`path:*${'a'.repeat(129)}`, 'the value with a wildcard at character 1 is too long', 1],
    ['1 2 3 4 5 6 7 8 9 10 11', 'too many words at character 22', 22],
    [
      `${'path:*a*b*c*d '.repeat(4)}PATH:e*`,
      'too many wildcards (*) at character 57: at most 16 are allowed',
      57,
    ],
    [`${'-path:/a* '.repeat(16)}-path:/b*`, 'in all values of -path', 161],
  ])('%j is an error with its position', (text, message, position) => {
    const problem = problemOf(text);
    expect(problem?.message).toContain(message);
    expect(problem?.position).toBe(position);
  });

  test('each field, and its excluded values, can have 16 wildcards', () => {
    const values = ['path:', '-path:', 'host:', '-host:'].map(field => `${field}*a*b*c*d `.repeat(4));
    expect(parse(`${values.join('')} path:/plain path:"*"`)).toHaveLength(18);
  });

  test('a field that the log kind does not have is an error that lists the fields', () => {
    expect(problemOf('a status:500', ['host', 'level'])?.message).toBe(
      'the selected log kind has no field status at character 3; allowed fields: host, level. To search for text with a colon, put it in quotes',
    );
  });

  test('of 20,000 random texts, each is parsed or is an error with a position in the text', () => {
    const text = fc.oneof(
      fc.array(fc.constantFrom(...SYNTAX), { maxLength: 30 }).map(parts => parts.join('')),
      fc.string({ unit: 'binary', maxLength: 40 }).map(value => value.toWellFormed()),
    );
    fc.assert(
      fc.property(text, value => {
        const problem = problemOf(value);
        if (problem !== undefined) {
          expect(problem.position).toBeGreaterThanOrEqual(1);
          expect(problem.position).toBeLessThanOrEqual([...value].length + 1);
          return;
        }
        // JavaScript reads the same subset of the syntax as RE2 does, except for the flags at the start.
        for (const bound of Object.values(bindSearchTerms('query', parse(value))))
          if (typeof bound.value === 'string') new RegExp(bound.value.replace(/^\(\?is?\)/, ''), 'isu');
      }),
      { numRuns: 20_000 },
    );
  });
});
