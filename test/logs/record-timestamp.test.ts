import { describe, expect, test } from 'vitest';
import { accept, CONTEXT, NOW, reject } from './validate-record.ts';

const HOUR = 3_600_000_000;
const RETENTION = 90 * 24 * HOUR;

/** `json` is the JSON text of the timestamp. */
const record = (json: string): string => `{"project":"p","message":"m","timestamp":${json}}`;
const readMicros = (json: string): number => accept(record(json)).timestampMicros;
const rejectCode = (json: string): string => reject(record(json)).code;

describe('the timestamp of a record', () => {
  test.each([
    ['"2026-11-14T09:00:00Z"', 1_794_646_800_000_000],
    ['"2026-11-14T09:00:00.5Z"', 1_794_646_800_500_000],
    ['"2026-11-14T09:00:00.123456789Z"', 1_794_646_800_123_456],
    ['"2026-11-14T11:00:00.123456+02:00"', 1_794_646_800_123_456],
    ['"2026-11-14 09:00:00.000001"', 1_794_646_800_000_001],
    ['"2026-11-14"', 1_794_614_400_000_000],
    // A text of 8 digits is a date. A number of 8 digits is no timestamp.
    ['"20261114"', 1_794_614_400_000_000],
    ['"20261114T110000.123456+0200"', 1_794_646_800_123_456],
    ['1794646800', 1_794_646_800_000_000],
    ['1794646800123', 1_794_646_800_123_000],
    ['1794646800123456', 1_794_646_800_123_456],
    ['1794646800123456789', 1_794_646_800_123_456],
    ['1794646800123456999', 1_794_646_800_123_456],
    ['1794646800000000000', 1_794_646_800_000_000],
    ['"1794646800"', 1_794_646_800_000_000],
    ['"1794646800123"', 1_794_646_800_123_000],
    ['"1794646800123456"', 1_794_646_800_123_456],
    ['"1794646800123456999"', 1_794_646_800_123_456],
  ])('%s is parsed to the microsecond', (json, micros) => {
    expect(readMicros(json)).toBe(micros);
  });

  test('a timestamp in nanoseconds is truncated to the exact microsecond', () => {
    for (let micros = NOW; micros < NOW + 2000; micros++) {
      expect(readMicros(`${micros}999`)).toBe(micros);
      expect(readMicros(`${micros}000`)).toBe(micros);
    }
  });

  test('an absent, null or empty timestamp is the time of arrival', () => {
    expect(accept('{"project":"p","message":"m"}').timestampMicros).toBe(NOW);
    expect(readMicros('null')).toBe(NOW);
    expect(readMicros('""')).toBe(NOW);
  });

  test.each([
    // 8 to 20 digits, except 10, 13, 16 and 19
    ...[8, 9, 11, 12, 14, 15, 17, 18, 20].map(digits => '17946468001234567890'.slice(0, digits)),
    ...'0 -1794646800 1794646800.5 1794646800123456789.5 1e400 true {} [1794646800]'.split(' '),
    ...'"yesterday" "2026-02-30" "2026-11-14T25:00:00Z" "2026-11-14T24:01Z" "2026-W46-6" "-1794646800"'.split(
      ' ',
    ),
    ...['"1794646800.0"', '" 1794646800"', '"1794646800123456\\n"', '"\\ud800"'],
  ])('%s is rejected because it is not a timestamp', json => {
    expect(rejectCode(json)).toBe('invalid_timestamp');
  });

  test('the rejection quotes up to 40 characters of the timestamp and says what is allowed', () => {
    const { message } = reject(record(`"${'x'.repeat(5000)}"`));
    expect(message).toContain('xxxx…');
    expect(message).toContain('ISO 8601');
    expect(message).toContain('10, 13, 16 or 19 digits');
    expect(message.length).toBeLessThan(450);
    expect(reject(record('123456789012345678901234567890')).message).toContain(
      '123456789012345678901234567890 ',
    );
  });

  test('a timestamp 1 hour in the future is accepted, and a microsecond more is rejected', () => {
    expect(readMicros(`${NOW + HOUR}`)).toBe(NOW + HOUR);
    expect(rejectCode(`${NOW + HOUR + 1}`)).toBe('in_the_future');
    expect(readMicros('"2026-11-14T10:30:00.123456Z"')).toBe(NOW + HOUR);
    expect(rejectCode('"2026-11-14T10:30:00.123457Z"')).toBe('in_the_future');
    expect(rejectCode('"9999-12-31T23:59:59Z"')).toBe('in_the_future');
    expect(rejectCode('9999999999999999999')).toBe('in_the_future');
  });

  test('a record exactly as old as the retention is accepted, and a microsecond more is rejected', () => {
    expect(readMicros(`${NOW - RETENTION}`)).toBe(NOW - RETENTION);
    expect(rejectCode(`${NOW - RETENTION - 1}`)).toBe('past_retention');
    expect(rejectCode('"0001-01-01"')).toBe('past_retention');
    const day = { ...CONTEXT, retentionDays: 1 };
    expect(accept(record(`${NOW - 24 * HOUR}`), 'postgres', day).timestampMicros).toBe(NOW - 24 * HOUR);
    expect(reject(record(`${NOW - 24 * HOUR - 1}`), day).code).toBe('past_retention');
  });
});

describe('another name of the timestamp', () => {
  const timestampOf = (fields: string) => {
    const { timestampMicros, metadata } = accept(`{"project":"p","message":"m",${fields}}`);
    return [timestampMicros, metadata];
  };
  const SENT = NOW - 5_000_000;

  test.each([
    [`"time":${SENT}`, '{}'],
    [`"ts":${SENT}`, '{}'],
    [`"@timestamp":"2026-11-14T09:29:55.123456Z"`, '{}'],
    [`"@timestamp":1,"ts":${SENT},"time":"soon"`, '{"@timestamp":1,"time":"soon"}'],
    [`"ts":1794648500,"time":${SENT}`, '{"ts":1794648500}'],
    [`"timestamp":null,"time":${SENT}`, '{}'],
    [`"timestamp":"","time":${SENT},"metadata":{"time":7}`, '{"time":7}'],
    [`"timestamp":${SENT},"time":1794648500`, '{"time":1794648500}'],
  ])('%s is read, and kept once: the metadata is %s', (fields, metadata) => {
    expect(timestampOf(fields)).toEqual([SENT, metadata]);
  });

  test.each(['"09:30:00"', '12', '{"a":1}', 'null', 'true', '""'])(
    'the time %s is no timestamp: it stays in the metadata, and the record has the time of arrival',
    time => {
      expect(timestampOf(`"time":${time}`)).toEqual([NOW, `{"time":${time}}`]);
    },
  );

  test('an invalid timestamp is rejected, whatever the fields with other names have', () => {
    expect(reject(`{"project":"p","message":"m","timestamp":"soon","time":${NOW}}`).code).toBe(
      'invalid_timestamp',
    );
  });

  test('a rejection names the field', () => {
    const late = reject(`{"project":"p","message":"m","time":${NOW + 2 * HOUR}}`);
    expect(late).toMatchObject({
      code: 'in_the_future',
      message: expect.stringMatching(/^The timestamp in time 2026/),
    });
  });
});
