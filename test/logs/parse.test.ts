import { describe, expect, test } from 'vitest';
import { DendroError } from '../../src/domain/errors.ts';
import { exactDigits } from '../../src/logs/exact-json.ts';
import { parseJsonBody, parseNdjsonLines } from '../../src/logs/parse.ts';

function faultOf(text: string): DendroError {
  try {
    parseJsonBody(text);
  } catch (error) {
    if (error instanceof DendroError) return error;
  }
  throw new Error('it did not throw a DendroError');
}

describe('a JSON body', () => {
  test('one object is one value', () => {
    expect(parseJsonBody('{"a":1}')).toStrictEqual([{ index: 0, value: { a: 1 } }]);
  });

  test('an array is its items, whatever they are, in order', () => {
    expect(parseJsonBody(' [{"a":1}, 2, null, []] ')).toStrictEqual([
      { index: 0, value: { a: 1 } },
      { index: 1, value: 2 },
      { index: 2, value: null },
      { index: 3, value: [] },
    ]);
  });

  test('a batch is its items, beside whatever fields a shipper adds', () => {
    const items = [
      { index: 0, value: { a: 1 } },
      { index: 1, value: { b: 2 } },
    ];
    expect(parseJsonBody('{"batch":[{"a":1},{"b":2}]}')).toStrictEqual(items);
    expect(parseJsonBody('{"source":"edge","batch":[{"a":1},{"b":2}]}')).toStrictEqual(items);
  });

  test('an empty array and an empty batch are no values', () => {
    expect(parseJsonBody('[]')).toStrictEqual([]);
    expect(parseJsonBody('{"batch":[]}')).toStrictEqual([]);
  });

  test.each([
    '{"batch":7}',
    '{"batch":null}',
    '{"batch":{"a":[]}}',
    '{"batch":[1],"event_message":"m"}',
    '{"metadata":{},"batch":[1]}',
  ])('%s is an ordinary record', json => {
    expect(parseJsonBody(json)).toStrictEqual([{ index: 0, value: JSON.parse(json) }]);
  });

  test('a scalar is one value, for the record rules to reject', () => {
    expect(parseJsonBody('null')).toStrictEqual([{ index: 0, value: null }]);
    expect(parseJsonBody('"text"')).toStrictEqual([{ index: 0, value: 'text' }]);
  });

  test('numbers that no double holds are kept', () => {
    const [parsed] = parseJsonBody('[1794648600123456789]');
    expect(parsed !== undefined && 'value' in parsed && exactDigits(parsed.value)).toBe(
      '1794648600123456789',
    );
  });

  test('what does not parse is an invalid body, and the message says what and where', () => {
    const error = faultOf('{\n  "a": 1,\n  "b": 2 "c"\n}');
    expect(error.code).toBe('invalid_body');
    expect(error.message).toMatch(/^This is not JSON: .*line 3,? column 10/);
  });

  test('an empty body says that it is empty', () => {
    expect(faultOf('').message).toBe('This is not JSON: it is empty.');
    expect(faultOf(' \n ').message).toBe('This is not JSON: it is empty.');
  });

  test('the message is one line of valid Unicode and holds little of the body', () => {
    for (const body of [
      `{"secret":"${'s'.repeat(100_000)}" x}`,
      `${'😀'.repeat(50_000)}`,
      `[1,\n\n\n\n x ${'y\n'.repeat(1000)}`,
      `[12345678901234567890,${'z'.repeat(10_000)}]`,
      `{"a":"\n${'b'.repeat(1000)}"}`,
    ]) {
      const { message } = faultOf(body);
      expect(message.length).toBeLessThan(200);
      expect(message).not.toMatch(/[\n\r]/);
      expect(message.isWellFormed()).toBe(true);
      expect(message).not.toContain('exact:');
    }
  });
});

describe('NDJSON', () => {
  test('each line is one value, arrays and batches too', () => {
    expect([...parseNdjsonLines(['{"a":1}', '[1]', '{"batch":[{}]}'])]).toStrictEqual([
      { index: 0, value: { a: 1 } },
      { index: 1, value: [1] },
      { index: 2, value: { batch: [{}] } },
    ]);
  });

  test('blank lines are nothing, and carriage returns are space', () => {
    expect([...parseNdjsonLines(['', '{"a":1}\r', '  ', '\r', '{"b":2}', ''])]).toStrictEqual([
      { index: 0, value: { a: 1 } },
      { index: 1, value: { b: 2 } },
    ]);
  });

  test('a line that does not parse is one rejected record, and the lines after it are read', () => {
    const parsed = [...parseNdjsonLines(['{"a":1}', '', '{"a":', '{"b":2}'])];
    expect(parsed).toMatchObject([
      { index: 0, value: { a: 1 } },
      { index: 1, rejection: { code: 'invalid_json' } },
      { index: 2, value: { b: 2 } },
    ]);
  });
});
