import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readLogLine, toLogLine, writeLogLine } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('', 'j', '\x1e', '\x1f', '\n', '\r', 'a\0b', '"', '\\', ' ', '\ufeff', '\u2028'),
);
const number = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(0)).map(n => n + 0);
const nullable = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
const extracted = fc.oneof(
  fc.constant({}),
  fc.record({ url: text, path: text }),
  fc.record({
    function_id: nullable(text),
    execution_time_ms: nullable(number),
    status_code: nullable(fc.nat()),
  }),
);
const record: fc.Arbitrary<LogRecord> = fc.record({
  id: text,
  timestampMicros: fc.maxSafeNat(),
  project: text,
  eventMessage: text,
  metadata: fc.json().map(json => `{"a":${json}}`),
  extracted,
});

describe('a log line', () => {
  test('is a single line whatever its texts contain, and is read back unchanged', () => {
    fc.assert(
      fc.property(record, ({ id, timestampMicros, project, eventMessage, extracted, metadata }) => {
        const line = toLogLine({ id, timestampMicros, project, eventMessage, extracted, metadata });
        expect(line.indexOf('\n')).toBe(line.length - 1);
        const columns = readLogLine(line);
        expect(columns).toEqual({
          ...{ id, timestamp: timestampMicros, project, event_message: eventMessage },
          ...extracted,
          metadata,
        });
        expect(writeLogLine(columns ?? {})).toBe(line);
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ['JSON', '{"id":"x","timestamp":1}\x1f{}\n'],
    ['an empty text', ''],
    ['too few fields', '\x1fx\x1f1\x1fp\x1f{}\n'],
    ['text fields that are not JSON strings', 'j\x1f"x\x1f1\x1f"p"\x1f""\x1f{}\n'],
    ['a timestamp that is not a number', '\x1fx\x1fnow\x1fp\x1fm\x1f{}\n'],
    ['an unknown flag', 'k\x1fx\x1f1\x1fp\x1fm\x1f{}\n'],
  ])('cannot be read from %s', (_, line) => {
    expect(readLogLine(line)).toBeUndefined();
  });
});
