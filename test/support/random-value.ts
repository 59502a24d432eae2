// Random parameter values and text for targets and headers, as a careless or malicious client might send.
import fc from 'fast-check';

const words = (text: string) => text.split(' ');

/** Text of characters from a first code on, without DEL, which is not allowed in a request. */
const textOf = (firstCode: number, maxLength: number) =>
  fc.string({
    unit: fc
      .integer({ min: firstCode, max: 0xff })
      .filter(code => code !== 0x7f)
      .map(code => String.fromCharCode(code)),
    maxLength,
  });

/** Anything allowed in a header value: no control character. */
export const headerText = textOf(0x20, 40);

/** Anything allowed in a target, with many valid and invalid percent encodings: no space, no control character. */
export const targetText = fc
  .array(fc.oneof(fc.constantFrom(...words('% %% %0 %00 %2f %ff %c3%a9 %ed%a0%80 +')), textOf(0x21, 30)), {
    maxLength: 5,
  })
  .map(parts => parts.join(''));

const EXPRESSION_PARTS = [
  ...words(
    '( ) [ ] { } * + ? | \\ ^ $ . a alpha \u00e9 \u{1f332} {1000} {2,1} (?i) (?P<n> (?= (?<! \\p{L} \\pN',
  ),
  ...words("\\C \\1 \\x{10FFFF} [[:alpha:]] (a*)* (a|a)+$ .*.*.* \\Q \\E ' -- ; /* $1 \0"),
];

export const expression = fc
  .array(fc.constantFrom(...EXPRESSION_PARTS), { maxLength: 12 })
  .map(parts => parts.join(''));

const digits = (count: number) =>
  fc.integer({ min: 0, max: 10 ** count - 1 }).map(number => String(number).padStart(count, '0'));

export const timestamp = fc.oneof(
  fc.date({ noInvalidDate: true }).map(date => date.toISOString()),
  fc.date({ noInvalidDate: true }).map(date => date.toISOString().slice(0, 10)),
  fc
    .tuple(digits(4), digits(2), digits(2), digits(2), digits(2), digits(2))
    .map(([year, month, day, ...time]) => `${year}-${month}-${day}T${time.join(':')}`),
  fc.constantFrom(
    '0000-01-01',
    '0001-01-01T00:00:00+23:59',
    '9999-12-31T23:59:60-23:59',
    '2026-11-14T09:30:00.123456789 02:00',
    'now()',
    '-infinity',
  ),
);

export const value = fc.oneof(
  expression,
  timestamp,
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    '',
    "' or 1=1 --",
    ...words('alpha daily minutely hourly 5min 7day FREE ENTERPRISE __proto__'),
  ),
  fc.integer({ min: 1000, max: 1100 }).map(length => 'v'.repeat(length)),
);
