import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatTimestamp, parseTimestamp } from '../../src/domain/timestamp.ts';

const two = (number: number) => String(number).padStart(2, '0');

/** The same text and instant, each computed from the fields in its own way. Undefined: there is no such time. */
const dateTimes = fc
  .record({
    isExtended: fc.boolean(),
    year: fc.oneof(fc.integer({ min: 0, max: 9999 }), fc.integer({ min: 1995, max: 2030 })),
    month: fc.integer({ min: 0, max: 13 }),
    day: fc.integer({ min: 0, max: 32 }),
    hour: fc.oneof(fc.integer({ min: 0, max: 26 }), fc.constant(24)),
    minute: fc.oneof(fc.integer({ min: 0, max: 61 }), fc.constant(0)),
    second: fc.oneof(fc.integer({ min: 0, max: 61 }), fc.constant(0)),
    /** Of the time: 0 has no time, 3 has the seconds. */
    fields: fc.integer({ min: 0, max: 3 }),
    fraction: fc.oneof(fc.constant(''), fc.stringMatching(/^[.,][0-9]{1,9}$/), fc.constant('.000')),
    separator: fc.constantFrom('T', 't', ' '),
    offset: fc.oneof(
      fc.constantFrom('', 'Z', 'z').map(text => ({ text, sign: 1, hours: 0, minutes: 0 })),
      fc.record({
        sign: fc.constantFrom(1, -1),
        hours: fc.integer({ min: 0, max: 25 }),
        minutes: fc.integer({ min: 0, max: 61 }),
        form: fc.constantFrom(':', '', undefined),
      }),
    ),
  })
  .map(({ isExtended, year, month, day, hour, minute, second, fields, fraction, separator, offset }) => {
    const dash = isExtended ? '-' : '';
    const time = [hour, minute, second].slice(0, fields);
    const [hours = 0, minutes = 0, seconds = 0] = time;
    const digits = fields === 3 ? fraction : '';
    const form = 'form' in offset ? offset.form : undefined;
    const offsetMinutes = 'form' in offset && form === undefined ? 0 : offset.minutes;
    const offsetText =
      'text' in offset
        ? offset.text
        : `${offset.sign < 0 ? '-' : '+'}${two(offset.hours)}${form === undefined ? '' : form + two(offset.minutes)}`;
    const text = `${String(year).padStart(4, '0')}${dash}${two(month)}${dash}${two(day)}${
      fields === 0 ? '' : separator + time.map(two).join(isExtended ? ':' : '') + digits + offsetText
    }`;
    const daysOfMonth = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    const isDate = day >= 1 && day <= (daysOfMonth[month - 1] ?? 0);
    const isMidnight = hours === 24 && minutes === 0 && seconds === 0 && /^[.,]?0*$/.test(digits);
    const isTime = (hours <= 23 && minutes <= 59 && seconds <= 60) || isMidnight;
    const isOffset = fields === 0 || (offset.hours <= 23 && offsetMinutes <= 59);
    if (!isDate || !isTime || !isOffset) return { text, micros: undefined };
    let days = daysBefore(year) + day - 1;
    for (let earlier = 1; earlier < month; earlier++) days += daysOfMonth[earlier - 1] ?? 0;
    const toUtc = fields === 0 ? 0 : -offset.sign * (offset.hours * 60 + offsetMinutes);
    const total = BigInt(days * 86_400 + hours * 3600 + (minutes + toUtc) * 60 + seconds);
    return { text, micros: total * 1_000_000n + BigInt(digits.slice(1, 7).padEnd(6, '0')) };
  });

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

/** Days from 1970-01-01 to the first day of the year. */
function daysBefore(year: number): number {
  let days = 0;
  for (let each = year; each < 1970; each++) days -= isLeap(each) ? 366 : 365;
  for (let each = 1970; each < year; each++) days += isLeap(each) ? 366 : 365;
  return days;
}

describe('parseTimestamp', () => {
  test('every combination of fields is the instant that they name, or no timestamp', () => {
    fc.assert(
      fc.property(dateTimes, ({ text, micros }) => {
        expect(parseTimestamp(text), text).toBe(micros);
      }),
      { numRuns: 20_000 },
    );
  });

  test('reads what formatTimestamp writes', () => {
    const times = fc.bigInt({ min: -62_000_000_000_000_000n, max: 253_402_300_799_999_999n });
    fc.assert(
      fc.property(times, micros => {
        expect(parseTimestamp(formatTimestamp(micros))).toBe(micros);
      }),
    );
  });

  test.each([
    ['2026-11-19T21:43Z', '2026-11-19T21:43:00Z'],
    ['2026-11-19 21:43', '2026-11-19T21:43:00Z'],
    ['2026-11-19T21Z', '2026-11-19T21:00:00Z'],
    ['2026-11-19T21:43:45+02', '2026-11-19T19:43:45Z'],
    ['2026-11-19T21:43:45+0200', '2026-11-19T19:43:45Z'],
    ['2026-11-19T21-0430', '2026-11-20T01:30:00Z'],
    ['2026-11-19T21:43:45,5Z', '2026-11-19T21:43:45.500000Z'],
    ['2026-11-19T21:43:45.1234569Z', '2026-11-19T21:43:45.123456Z'],
    ['20261119T214345Z', '2026-11-19T21:43:45Z'],
    ['20261119T214345.5+0200', '2026-11-19T19:43:45.500000Z'],
    ['20261119T2143', '2026-11-19T21:43:00Z'],
    ['20261119', '2026-11-19T00:00:00Z'],
    ['2026-12-31T24:00:00Z', '2027-01-01T00:00:00Z'],
    ['2026-12-31T24', '2027-01-01T00:00:00Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z'],
    ['2026-11', '2026-11-01T00:00:00Z'],
  ])('%s is %s', (text, expected) => {
    expect(formatTimestamp(parseTimestamp(text) ?? 0n)).toBe(expected);
  });

  test.each([
    ...['2026-W47-4', '2026W474', '2026-W47', '2026-323', '2026323', '2026', '202611', '2026-13', '2026-00'],
    ...['2026-02-30', '2025-02-29', '1900-02-29', '20260230', '2026-11-19T24:01', '2026-11-19T24:00:00.1'],
    ...['2026-11-19T25:00', '2026-11-19T21:60', '2026-11-19T21:43:61Z', '2026-11-19T21:43:45+24'],
    // Extended and basic forms are not mixed, except in the offset.
    ...['2026-11-19T214345Z', '20261119T21:43:45Z', '2026-1119', '202611-19'],
    ...['2026-11-19T', '2026-11-19Z', '2026-11Z', '2026-11T00', '2026-11-19T21:43.5Z', '2026-11-19T21,5'],
    ...[
      '2026-11-19T21:43:45.',
      '2026-11-19T21:43:45.1234567890Z',
      '2026-11-19T21:43:45 02:00',
      '+2026-11-19',
    ],
    ...['2026-11-19T21:43:45+2', '2026-11-19T21:43:45+020', '2026-11-19T21:43:45+02:0', ' 2026-11-19', ''],
  ])('%j is no timestamp', text => {
    expect(parseTimestamp(text)).toBeUndefined();
  });
});
