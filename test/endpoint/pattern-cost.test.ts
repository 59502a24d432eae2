import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findPatternExcess, isExpensivePattern } from '../../src/endpoint/pattern-cost.ts';

/** Different texts of 20 letters, as project references are. */
function references(count: number): string {
  const letter = (index: number) => String.fromCharCode(97 + ((index * index * 7 + index * 11) % 23));
  return Array.from({ length: count }, (_, row) =>
    Array.from({ length: 20 }, (_, column) => letter(row * 31 + column * 3)).join(''),
  ).join('|');
}

describe('the cost of a regular expression', () => {
  test.each([
    '',
    'x'.repeat(1024),
    'abc|def',
    '^https://[^/]+/rest/v1/[^?]*\\?select=.*&id=eq\\.\\d+',
    '[a-z0-9]{20}\\.example\\.com',
    '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}',
    '(?i)Project.*(rest|auth)',
    '\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}',
    '.*a.*b.*c.*d.*e.*',
    '\\p{Greek}+|Straße|東京|😀',
    'https://abcdefghijklmnopqrst/functions/v1/hello'.repeat(10),
    '(?i)\\b(get|post|put|delete)\\b /[^ ]* http\\b',
    '(?m)^GET .*$',
    references(48),
    `^https://(${references(40)})\\.example\\.com$`,
    `\\b(${references(40)})\\b`,
    '\\Q[ab]{99}\\E',
    '[{20}]{3}a{b}{,30}\\{30}',
  ])('%s is allowed', pattern => {
    expect(findPatternExcess(pattern)).toBeUndefined();
  });

  // Without a limit, each of these takes DuckDB between 12 and 120 s for a block of 2,048 texts of 2,048 bytes.
  test.each([
    ['a count of a class', 'a[ab]{100}z'],
    ['the same written out', `a${'[ab]'.repeat(100)}z`],
    ['the same as alternatives', `a${'(a|b)'.repeat(50)}z`],
    ['alternatives of several letters', 'a(?:aa|ab|ba|bb){20}z'],
    ['a count of any character', 'a.{60}z'],
    ['optional counts', '(?:[ab]{0,1000}c)'],
    ['optional characters', 'a(?:b?a?){40}z'],
    ['nested counts', '(?:(?:a{0,10}){0,10}){0,10}z'],
    ['a count in a group with flags', '(?i:a[ab]{60}z)'],
    ['letters that are in two cases', `(?i:${'a'.repeat(50)})${'a'.repeat(50)}`],
    ['a count after quoted text', '\\Qa\\E[ab]{60}z'],
    ['a count of a class with brackets and names', 'a[]\\]a[:digit:]]{60}z'],
    ['a count before the end of a line', '(?m)(?:a.{300}b)?$'],
    ['a count after a word boundary', '\\b[^z]{60}z'],
    ['a count of Unicode classes', '^\\pL{16}'],
    ['the same in a class', '[a\\p{Lu}_]{16}z'],
    ['a repetitive text with few choices', `(?:${'a'.repeat(100)}.){4}z`],
  ])('%s is too expensive', (_, pattern) => {
    expect(findPatternExcess(pattern)).toMatch(/^its size is \d+, at most \d+ is allowed\. Use \* or \+/);
  });

  // RE2 needs 30 ms for a block with the first three, and 4 s with the last one, whose states do not fit into its memory.
  test.each([
    ['^https://(abcdefghijklmnopqrst|[a-f][a-z]+)[.].*/(rest|auth)/v1', false],
    ['^https://[^/]+/rest/v1/[^?]*\\?select=.*', false],
    ['a[ab]{10}z', false],
    ['a[ab]{14}z', true],
  ])('queries with %s run one at a time: %s', (pattern, isExpensive) => {
    expect(isExpensivePattern(pattern)).toBe(isExpensive);
  });

  test('random text is judged without an error, and a repetition never costs less', () => {
    const syntax = fc.constantFrom(...'ab.[]()|*+?{}\\^$-,:!0123456789pPdQExisé😀');
    fc.assert(
      fc.property(fc.array(syntax, { maxLength: 200 }), characters => {
        const pattern = characters.join('');
        if (findPatternExcess(pattern) !== undefined)
          expect(findPatternExcess(`${pattern}\\E]}|${pattern}`)).toBeDefined();
      }),
      { numRuns: 2_000 },
    );
  });
});
