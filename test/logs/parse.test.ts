import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DendroError } from '../../src/domain/errors.ts';
import { parseExactJson } from '../../src/logs/exact-json.ts';
import { parseJsonBody, parseLine, parseNdjsonLines, splitLine } from '../../src/logs/parse.ts';
import { isRejection, toRecord } from '../../src/logs/record.ts';
import { CONTEXT } from './validate-record.ts';

function findError(text: string): DendroError {
  try {
    parseJsonBody(text);
  } catch (error) {
    if (error instanceof DendroError) return error;
  }
  throw new Error('parseJsonBody did not throw a DendroError');
}

describe('parseJsonBody', () => {
  test('an array is one value per item, of any type, in order', () => {
    expect(parseJsonBody(' [{"a":1}, 2, null, []] ')).toStrictEqual([
      { index: 0, value: { a: 1 } },
      { index: 1, value: 2 },
      { index: 2, value: null },
      { index: 3, value: [] },
    ]);
  });

  test('a batch is one value per item, also next to fields that a sender adds', () => {
    const items = [
      { index: 0, value: { a: 1 } },
      { index: 1, value: { b: 2 } },
    ];
    expect(parseJsonBody('{"batch":[{"a":1},{"b":2}]}')).toStrictEqual(items);
    expect(parseJsonBody('{"source":"edge","batch":[{"a":1},{"b":2}]}')).toStrictEqual(items);
  });

  test('a syntax error has one position, by line and column', () => {
    const { message } = findError('{"a": 1,\n "b": 2,, }');
    expect(message.replaceAll(',', '')).toMatch(/^[^(]*at position 17 \(line 2 column 9\)[^(]*$/);
  });

  test.each([
    '{"batch":7}',
    '{"batch":null}',
    '{"batch":{"a":[]}}',
    '{"batch":[1],"event_message":"m"}',
    '{"metadata":{},"batch":[1]}',
  ])('%s is one record and not a batch', json => {
    expect(parseJsonBody(json)).toStrictEqual([{ index: 0, value: JSON.parse(json) }]);
  });

  test('invalid JSON throws invalid_body with the error and its line and column', () => {
    const error = findError('{\n  "a": 1,\n  "b": 2 "c"\n}');
    expect(error.code).toBe('invalid_body');
    expect(error.message).toMatch(/^invalid JSON: .*line 3,? column 10/);
  });

  test('an empty body throws an error that says so', () => {
    expect(findError('').message).toBe('invalid JSON: the text is empty.');
    expect(findError(' \n ').message).toBe('invalid JSON: the text is empty.');
  });

  test('the error message is one short line of valid Unicode, whatever the body is', () => {
    for (const body of [
      `{"secret":"${'s'.repeat(100_000)}" x}`,
      `${'😀'.repeat(50_000)}`,
      `[1,\n\n\n\n x ${'y\n'.repeat(1000)}`,
      `[12345678901234567890,${'z'.repeat(10_000)}]`,
      `{"a":"\n${'b'.repeat(1000)}"}`,
    ]) {
      const { message } = findError(body);
      expect(message.length).toBeLessThan(200);
      expect(message).not.toMatch(/[\n\r]/);
      expect(message.isWellFormed()).toBe(true);
      expect(message).not.toContain('exact:');
    }
  });
});

describe('parseNdjsonLines', () => {
  test('each line is one value, also an array or a batch', () => {
    expect([...parseNdjsonLines(['{"a":1}', '[1]', '{"batch":[{}]}'])]).toStrictEqual([
      { index: 0, value: { a: 1 } },
      { index: 1, value: [1] },
      { index: 2, value: { batch: [{}] } },
    ]);
  });

  test('blank lines are skipped, and carriage returns are white space', () => {
    expect([...parseNdjsonLines(['', '{"a":1}\r', '  ', '\r', '{"b":2}', ''])]).toStrictEqual([
      { index: 0, value: { a: 1 } },
      { index: 1, value: { b: 2 } },
    ]);
  });

  test('an invalid line is one rejected record, and the lines after it are parsed', () => {
    const parsed = [...parseNdjsonLines(['{"a":1}', '', '{"a":', '{"b":2}'])];
    expect(parsed).toMatchObject([
      { index: 0, value: { a: 1 } },
      { index: 1, rejection: { code: 'invalid_json' } },
      { index: 2, value: { b: 2 } },
    ]);
  });
});

const storedMetadata = (line: string) => {
  const parsed = parseLine(line, 0);
  if (!('value' in parsed)) throw new Error('the line is not JSON');
  const record = toRecord(parsed.value, 'edge', CONTEXT, parsed.originalMetadata);
  if (isRejection(record)) throw new Error(record.message);
  return record.metadata;
};

describe('parseLine: metadata as the last field of a line', () => {
  test.each([
    ['numbers', '{"a":1.50,"b":1e5,"c":12345678901234567890}'],
    ['white space', '{ "a" : [ 1 , 2 ] }'],
    ['keys that look like numbers', '{"2":"b","1":"a"}'],
    ['escapes', '{"a":"\\u00e9\\n\\\\"}'],
    ['a string that looks like a metadata field', '{"a":",\\"metadata\\":{}}"}'],
    ['a nested metadata field', '{"a":{"b":1,"metadata":{"c":2}}}'],
  ])('the original text of the metadata is stored: %s', (_, metadata) => {
    expect(storedMetadata(`{"project":"p","message":"m","metadata":${metadata}}`)).toBe(metadata);
  });

  test.each([
    ['another field after it', '{"project":"p","metadata":{"a":1},"b":2}', '{"a":1,"b":2}'],
    ['another field before it', '{"project":"p","b":2,"metadata":{"a":1}}', '{"a":1,"b":2}'],
    ['a lone surrogate', '{"project":"p","metadata":{"a":"\\uD800x"}}', '{"a":"\ufffdx"}'],
    ['an escaped surrogate pair', '{"project":"p","metadata":{"a":"\\ud83d\\ude00"}}', '{"a":"😀"}'],
    ['a carriage return', '{"project":"p","metadata":{"a":\r1}}', '{"a":1}'],
    ['no field before it', '{"metadata":{"project":"p"}}', '{"project":"p"}'],
    ['an array of one', '{"project":"p","metadata":[{"a":1}]}', '{"a":1}'],
    ['a space after it', '{"project":"p","metadata":{"a":1} }', '{"a":1}'],
    [
      'its name inside a string',
      '{"project":"p","message":",\\"metadata\\":{","metadata":{"a":1}}',
      '{"a":1}',
    ],
    ['a duplicate before it', '{"project":"p","metadata":{"a":1},"metadata":{"b":2}}', '{"b":2}'],
    [
      'a metadata field inside another field',
      '{"project":"p","x":{"y":1,"metadata":{"z":1}}}',
      '{"x":{"y":1,"metadata":{"z":1}}}',
    ],
  ])('metadata with %s is stored as if the line was parsed as a whole', (_, line, metadata) => {
    expect(storedMetadata(line)).toBe(metadata);
  });

  test.each([
    '{"a":1,"metadata":{"b":}}',
    '{"a":1,"metadata":{}}}',
    '{"a":1,,"metadata":{}}',
    '{"a":1,"metadata":{"b":1}',
  ])('splitting does not make an invalid line valid: %s', line => {
    expect('rejection' in parseLine(line, 0)).toBe(true);
  });
});

test('splitLine returns the same value as parsing the whole line', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom(',"metadata":{', '"}}', '{', '}', '\\'));
  const json = fc.letrec<{ value: unknown }>(tie => ({
    value: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.double(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(fc.constantFrom('metadata', 'a', '1'), text), tie('value'), { maxKeys: 3 }),
    ),
  })).value;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('metadata', 'project', 'id', 'b'), json), { maxLength: 4 }),
      fields => {
        const members = fields.map(
          ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value) ?? 'null'}`,
        );
        const line = `{${members.join(',')}}`;
        const split = splitLine(line);
        if (split === undefined) return;
        expect(split.value).toEqual(parseExactJson(line));
        expect(parseExactJson(split.originalMetadata)).toEqual(split.value['metadata']);
      },
    ),
    { numRuns: 3000 },
  );
});
