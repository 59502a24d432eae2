import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { computePatternCost, MAX_PATTERN_COST } from '../../src/endpoint/pattern-cost.ts';
import { Nfa } from '../../src/endpoint/pattern-nfa.ts';
import { assignSymbols } from '../../src/endpoint/pattern-symbols.ts';
import { parsePattern } from '../../src/endpoint/pattern-syntax.ts';

const TOO_EXPENSIVE = Number.POSITIVE_INFINITY;

/** Different texts of 20 letters, as project references are. */
function references(count: number): string[] {
  let state = 1;
  const letter = () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return String.fromCharCode(97 + (Math.floor(state / 65536) % 26));
  };
  return Array.from({ length: count }, () => Array.from({ length: 20 }, letter).join(''));
}

describe('the cost of a regular expression', () => {
  test.each([
    'abc',
    '',
    'abc|def',
    '^https://[^/]+/rest/v1/[^?]*\\?select=.*&id=eq\\.\\d+',
    '[a-z0-9]{20}\\.example\\.com',
    '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}',
    '(?i)Project.*(rest|auth)',
    '\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}',
    '.*a.*b.*c.*d.*e.*',
    '^.{1,100}/rest',
    '\\p{Greek}+',
    'Straße|東京|😀',
    'x'.repeat(1024),
    '😀'.repeat(1024),
    references(48).join('|'),
    `^https://(${references(40).join('|')})\\.example\\.com/`,
    '[a-z0-9-]{1,63}\\.example\\.com',
    '(?i)(get|post|put|delete) /[^ ]{0,100} http',
    '^abcdefghijklmnopqrst$',
    'https://abcdefghijklmnopqrst\\.example\\.com(/|$)',
    '(?i)\\b(get|post|put|delete)\\b /[^ ]{0,30} http\\b',
    '(?m)^GET .*$',
    '[a-z0-9-]{1,63}\\.example\\.com$',
    `^https://(${references(40).join('|')})\\.example\\.com$`,
    `\\b(${references(40).join('|')})\\b`,
    '(?:^|[.])rest.{0,20}$',
    'a[ab]{20}z$',
    '\\pL{8}',
    '(?:\\pL+/){8}',
    'my\\_project',
    '[a\\_]+\\_',
    '\\p{Yi}+',
    '\\P{Yi}',
  ])('%s is allowed', pattern => {
    expect(computePatternCost(pattern)).toBeLessThanOrEqual(MAX_PATTERN_COST);
  });

  test.each([
    ['a long counted repetition', '(?:[ab]{0,1000}c)'],
    ['a count after a letter that it can repeat', 'a[ab]{20}z'],
    ['the same written out', `a${'[ab]'.repeat(20)}z`],
    ['the same as alternatives', `a${'(a|b)'.repeat(20)}z`],
    ['alternatives of several letters', 'a(?:aa|ab|ba|bb){10}z'],
    ['a count of any character', 'a.{12}z'],
    ['an optional count of any character', 'a.{0,30}z'],
    ['many optional characters', 'a(?:b?a?){16}z'],
    ['nested counted repetitions', '(?:(?:a{0,10}){0,10}){0,10}z'],
    ['nested counted repetitions of nothing', '(?:(?:(?:){1000}){1000}){1000}'],
    ['a count of a Unicode class', 'a\\pL{10}z'],
    ['a count of negated characters', 'a[^z]{12}z'],
    ['a count in a group with flags', '(?i:a[ab]{20}z)'],
    ['a count after a quoted text', '\\Qa\\E[ab]{20}z'],
    ['an optional count before the end of a line', '(?m)(?:a.{300}b)?$'],
    ['an optional count before the end of the text', 'b(?:.{300}a.*)?$'],
    ['the same with \\z in a group', '(b(?:.{300}a.*)?\\z)'],
    ['an optional count before a word boundary', 'a(?:[ab]{20}z)?\\b'],
    ['an optional count before the inside of a word', 'a(?:[ab-]{40}z)?\\B'],
    ['a count after a word boundary', '\\b[^z]{60}z'],
    ['a count after a place inside a word', '\\B[^z]{60}z'],
    ['a count after the start of a line', '(?m)^[^z]{60}z'],
    ['a count after a character that is not a line break', '.[^z]{60}z'],
    ['a count that is expensive backwards, from the end of the text', 'z[ab]{20}a[ab]*$'],
    ['the same in a group', '(?:z[ab]{20}a[ab]*$)'],
    ['a count after characters of which most are in no Unicode class', '(?:\\pN|[^a-zA-Z])[^z]{60}z'],
    ['the same with a negated class that ignores case', '(?:(?i:\\P{Lu})|[A-Z])[^z]{60}z'],
    ['a count after a script that only the engine knows', '(?s)(?:\\p{Nope}|[^a-zA-Z])[^z]{60}z'],
    ['the same with a negated script', '(?s)(?:\\P{Nope}|[a-z])[^z]{60}z'],
    ['more Unicode classes than fit into the memory of RE2', '^\\pL{16}'],
    ['the same in an expression that matches every text', '\\pL{0,20}'],
    ['many long alternatives before a wildcard', `x(${references(40).join('|')}).*a.*b.*c.*d`],
  ])('%s is too expensive', (_, pattern) => {
    expect(computePatternCost(pattern)).toBe(TOO_EXPENSIVE);
  });

  // It took 40 s, longer than a test may take, when each of the 1,000 copies was compared.
  test.each(['{1000}', '{0,1000}'])('a class of 334 Unicode classes with %s is too expensive', count => {
    const pattern = `[${'\\pL\\PL'.repeat(167)}]${count}`;
    expect(computePatternCost(pattern)).toBe(TOO_EXPENSIVE);
  });

  test('the characters of a counted set are compared once, not once for each copy', () => {
    const ranges = [0x61, 0x7a];
    const join = vi.spyOn(ranges, 'join');
    const set = { type: 'set', ranges, isUnicodeClass: false } as const;
    const { accepted } = assignSymbols(
      new Nfa({ type: 'repeat', node: set, min: 100, max: 100 }, MAX_PATTERN_COST),
    );
    expect(accepted.filter(symbols => symbols.length === 1)).toHaveLength(100);
    expect(join).toHaveBeenCalledTimes(1);
  });

  test('random text is analysed without an error', () => {
    const syntax = fc.constantFrom(...'ab.[]()|*+?{}\\^$-,:!0123456789pPdQExisé😀');
    fc.assert(
      fc.property(fc.array(syntax, { maxLength: 200 }), characters => {
        const cost = computePatternCost(characters.join(''));
        expect(cost === undefined || cost >= 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('the parser of regular expressions', () => {
  test.each([
    ['an escaped class', '[\\d\\]\\-\\x41\\x{1F600}-\\x{1F64F}]'],
    ['a bracket at the start of a class', '[]a]'],
    ['a negated class', '[^]a]'],
    ['a POSIX class', '[[:alpha:][:^digit:]_]'],
    ['Unicode classes', '\\pL\\PN\\p{Lu}\\p{^Greek}\\P{Old_Italic}[\\p{Any}\\pZ]'],
    ['scripts with a short name, and scripts that only the engine knows', '\\p{Yi}[\\P{Yi}]\\p{Nope}'],
    ['named groups', '(?P<a>x)(?<b>y)'],
    ['flags', '(?i)a(?-i:b)(?s-m:c)(?mU)^d$'],
    ['lazy operators', 'a*?b+?c??d{2,}?'],
    ['a brace that is a literal', 'a{b}{,3}{'],
    ['escapes', '\\a\\f\\t\\n\\r\\v\\123\\07\\x7F\\.\\/\\-\\C\\b\\B\\A\\z'],
    ['quoted text', '\\Qa.b[\\E+\\Qopen'],
    ['empty alternatives', '(|a|)'],
  ])('understands %s', (_, pattern) => {
    expect(parsePattern(pattern)).toBeDefined();
  });

  test.each([
    ['[b-da-cx\\d0e]', [0x30, 0x39, 0x61, 0x65, 0x78, 0x78]],
    ['(?i)[bA-C]', [0x41, 0x43, 0x61, 0x63]],
    ['[\\pL\\PL\\pL]', [0, 0x10ffff]],
  ])('joins the ranges of the class %s that overlap or touch', (pattern, ranges) => {
    expect(parsePattern(pattern)).toMatchObject({ nodes: [{ type: 'set', ranges }] });
  });

  test.each(['(', ')', '[a', '[z-a]', '\\8', '\\', '(?<n)', '[[:nope:]]', '(?=a)'])(
    'does not understand %s',
    pattern => {
      expect(parsePattern(pattern)).toBeUndefined();
    },
  );
});
