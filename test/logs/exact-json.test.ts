import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exactNumberText, isText, parseExactJson, stringifyExactJson } from '../../src/logs/exact-json.ts';

const roundTrip = (json: string): string => stringifyExactJson(parseExactJson(json));

describe('parseExactJson and stringifyExactJson: numbers', () => {
  const words = (text: string) => text.split(' ');

  test.each([
    ...words('1794648600123456789 -1794648600123456789 1234567890123456789012345 9007199254740993 1e400'),
    ...words(
      '-1E+400 1e-400 0.1000000000000000055511151231257827 1234567890123.45678901 12345678901234567890e-3',
    ),
  ])('%s, which a double cannot represent, is written back unchanged in any position', number => {
    for (const json of [
      number,
      `[${number}]`,
      `[1,${number},2]`,
      `{"a":${number}}`,
      `{"a":{"b":[${number},"x",${number}]}}`,
      `{"text":"a \\" ${number} \\\\","a":${number}}`,
    ]) {
      expect(roundTrip(json)).toBe(json);
    }
    expect(roundTrip(`{ "a" :\n\t${number} }`)).toBe(`{"a":${number}}`);
    expect(exactNumberText(parseExactJson(number))).toBe(number);
    expect(isText(parseExactJson(number))).toBe(false);
  });

  test.each([
    ...words(
      '0 1 -1.5 37.25 0.30000000000000004 1794648600123456 9007199254740991 1e5 5e-324 1.0 1E2 0e5 -0.0',
    ),
    '0.00000000000000000000',
  ])('%s, which a double can represent, is parsed as a number', number => {
    expect(parseExactJson(`{"a":${number}}`)).toStrictEqual({ a: Number(number) });
    expect(parseExactJson(`{"a":${number},"b":1e400}`)).toMatchObject({ a: Number(number) });
  });

  test('numbers with a million digits or zeros are parsed in linear time', () => {
    const million = 1_000_000;
    for (const number of [
      `1${'7'.repeat(million)}`,
      `1${'0'.repeat(million)}1`,
      `0.${'0'.repeat(million)}1`,
    ]) {
      const json = `{"a":${number}}`;
      const start = performance.now();
      expect(roundTrip(json) === json).toBe(true);
      expect(performance.now() - start).toBeLessThan(10_000);
    }
  });
});

describe('parseExactJson and stringifyExactJson: strings', () => {
  test('a string that looks like a number, a marker or JSON stays a string', () => {
    const texts = [
      '1794648600123456789',
      ' 1794648600123456789,',
      ':1e400',
      '[1e400]',
      '{"a":1794648600123456789}',
      '`exact:1794648600123456789',
      '`exact:AAAAAAAAAAAAAAAAAAAAAAAA:1794648600123456789',
      '\\',
      '\\" 1e400 ',
      '"',
    ];
    const value = { texts, [texts[4] ?? '']: 1 };
    const json = JSON.stringify(value).replace(/^\{/, '{"n":1794648600123456789,');
    expect(roundTrip(json)).toBe(json);
    expect((parseExactJson(json) as typeof value).texts.every(isText)).toBe(true);
  });

  test.each([
    ['plain', 'x'.repeat(16_000_000)],
    ['full of escaped quotes', '\\"'.repeat(8_000_000)],
    ['full of backslashes', '\\\\'.repeat(8_000_000)],
    ['full of numbers', ' 1e400,'.repeat(2_000_000)],
  ])('a string of 16 MB, %s, does not overflow the stack and takes linear time', (_, text) => {
    const json = `{"n":1e400,"text":"${text}"}`;
    const start = performance.now();
    expect(roundTrip(json) === json).toBe(true);
    expect(performance.now() - start).toBeLessThan(10_000);
  });

  test('a million marked numbers are parsed and stringified', () => {
    const json = `[${'1e400,'.repeat(1_000_000)}0]`;
    expect(roundTrip(json) === json).toBe(true);
  });

  test('arrays nested a million deep are parsed', () => {
    expect(() => parseExactJson(`${'['.repeat(1_000_000)}1e400${']'.repeat(1_000_000)}`)).not.toThrow();
  });
});

describe('parseExactJson: invalid JSON', () => {
  test('random sequences of tokens are accepted, or throw the same error, as with JSON.parse', () => {
    const token = fc.constantFrom('1e400', '12345678901234567890', '"a"', 'null', ...'"\\{}[]:, \n-+.e07');
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), tokens => {
        const json = tokens.join('');
        let expected: unknown;
        try {
          JSON.parse(json);
        } catch (error) {
          expected = error;
        }
        if (expected === undefined) expect(() => parseExactJson(json)).not.toThrow();
        else expect(() => parseExactJson(json)).toThrow(expected as SyntaxError);
      }),
      { numRuns: 20_000 },
    );
  });
});

describe('parseExactJson and stringifyExactJson: any JSON', () => {
  test('__proto__, constructor and toString are ordinary keys', () => {
    const json = '{"__proto__":{"a":1e400},"constructor":1,"toString":"x","b":{"__proto__":null}}';
    expect(roundTrip(json)).toBe(json);
    expect(Object.getPrototypeOf(parseExactJson(json))).toBe(Object.prototype);
  });

  test('random JSON has the same value after a round trip', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), json => {
        expect(roundTrip(json)).toBe(JSON.stringify(JSON.parse(json)));
      }),
      { numRuns: 2000 },
    );
  });

  test('random JSON with numbers that a double cannot represent is unchanged after a round trip', () => {
    const number = fc
      .tuple(fc.bigInt(10n ** 18n, 10n ** 30n), fc.constantFrom('', '-'))
      .map(([n, sign]) => `${sign}${n * 10n + 1n}`);
    const { json } = fc.letrec<{ json: string }>(tie => ({
      json: fc.oneof(
        { maxDepth: 4 },
        number,
        fc.string({ unit: 'binary' }).map(text => JSON.stringify(text)),
        fc.array(tie('json'), { maxLength: 4 }).map(items => `[${items.join(',')}]`),
        fc
          .dictionary(
            fc.string().map(key => `k${key}`),
            tie('json'),
            { maxKeys: 4 },
          )
          .map(
            fields =>
              `{${Object.entries(fields)
                .map(([key, field]) => `${JSON.stringify(key)}:${field}`)
                .join(',')}}`,
          ),
      ),
    }));
    fc.assert(
      fc.property(json, text => {
        expect(roundTrip(text)).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });
});
