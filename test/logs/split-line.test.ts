import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseExactJson } from '../../src/logs/exact-json.ts';
import { parseLine } from '../../src/logs/parse.ts';
import { isRejection, toRecord } from '../../src/logs/record.ts';
import { splitLine } from '../../src/logs/split-line.ts';
import { DOOR } from './door.ts';

const metadataOf = (line: string) => {
  const parsed = parseLine(line, 0);
  if (!('value' in parsed)) throw new Error('the line is no JSON');
  const record = toRecord(parsed.value, 'edge', DOOR, parsed.metadataText);
  if (isRejection(record)) throw new Error(record.message);
  return record.metadata;
};

describe('metadata at the end of a line', () => {
  test.each([
    ['numbers', '{"a":1.50,"b":1e5,"c":12345678901234567890}'],
    ['white space', '{ "a" : [ 1 , 2 ] }'],
    ['keys that look like numbers', '{"2":"b","1":"a"}'],
    ['escapes', '{"a":"\\u00e9\\n\\\\"}'],
    ['text that looks like more metadata', '{"a":",\\"metadata\\":{}}"}'],
    ['metadata within', '{"a":{"b":1,"metadata":{"c":2}}}'],
  ])('is kept as it was sent: %s', (_, metadata) => {
    expect(metadataOf(`{"project":"p","message":"m","metadata":${metadata}}`)).toBe(metadata);
  });

  test.each([
    ['another field behind it', '{"project":"p","metadata":{"a":1},"b":2}', '{"a":1,"b":2}'],
    ['another field before it', '{"project":"p","b":2,"metadata":{"a":1}}', '{"a":1,"b":2}'],
    ['half a surrogate pair', '{"project":"p","metadata":{"a":"\\uD800x"}}', '{"a":"\ufffdx"}'],
    ['a whole pair in escapes', '{"project":"p","metadata":{"a":"\\ud83d\\ude00"}}', '{"a":"😀"}'],
    ['a carriage return', '{"project":"p","metadata":{"a":\r1}}', '{"a":1}'],
    ['nothing before it', '{"metadata":{"project":"p"}}', '{"project":"p"}'],
    ['an array of one', '{"project":"p","metadata":[{"a":1}]}', '{"a":1}'],
    ['a space behind it', '{"project":"p","metadata":{"a":1} }', '{"a":1}'],
    ['a twin within a text', '{"project":"p","message":",\\"metadata\\":{","metadata":{"a":1}}', '{"a":1}'],
    ['a twin before it', '{"project":"p","metadata":{"a":1},"metadata":{"b":2}}', '{"b":2}'],
    [
      'a twin within another field',
      '{"project":"p","x":{"y":1,"metadata":{"z":1}}}',
      '{"x":{"y":1,"metadata":{"z":1}}}',
    ],
  ])('is read like any other with %s', (_, line, metadata) => {
    expect(metadataOf(line)).toBe(metadata);
  });

  test.each([
    '{"a":1,"metadata":{"b":}}',
    '{"a":1,"metadata":{}}}',
    '{"a":1,,"metadata":{}}',
    '{"a":1,"metadata":{"b":1}',
  ])('does not make a line good that is none: %s', line => {
    expect('rejection' in parseLine(line, 0)).toBe(true);
  });
});

test('a line that is taken apart means what it means as a whole', () => {
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
        expect(parseExactJson(split.metadataText)).toEqual(split.value['metadata']);
      },
    ),
    { numRuns: 3000 },
  );
});
