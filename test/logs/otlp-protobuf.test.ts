import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DendroError } from '../../src/domain/errors.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { decodeOtlpJson } from '../../src/logs/otlp-json.ts';
import { decodeOtlpProtobuf, ProtobufReader } from '../../src/logs/otlp-protobuf.ts';
import { toIntakeRecords } from '../../src/logs/otlp-record.ts';
import { encodeOtlp, field, nestedArrays, type OtlpObject, otlpRequest, text } from '../support/otlp.ts';

const ALL_KINDS = { sourceName: undefined, allowedKinds: LOG_KINDS };

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);
/** Until the year 2255. */
const nanos = fc.bigInt({ min: 0n, max: 9n * 10n ** 18n }).map(String);
const string = fc.string({ unit: 'binary', maxLength: 40 });
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map(id => Buffer.from(id).toString('hex'));

const { anyValue } = fc.letrec<{ anyValue: OtlpObject }>(tie => ({
  anyValue: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ stringValue: string }),
    fc.record({ boolValue: fc.boolean() }),
    fc.record({ intValue: int64 }),
    fc.record({ doubleValue: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
    fc.record({
      bytesValue: fc.uint8Array({ maxLength: 9 }).map(bytes => Buffer.from(bytes).toString('base64')),
    }),
    fc.constant({}),
    fc.record({ arrayValue: fc.record({ values: fc.array(tie('anyValue'), { maxLength: 4 }) }) }),
    fc.record({
      kvlistValue: fc.record({
        values: fc.array(fc.record({ key: string, value: tie('anyValue') }), { maxLength: 4 }),
      }),
    }),
  ),
}));
const attributes = fc.array(fc.record({ key: string, value: anyValue }), { maxLength: 5 });
const logRecord = fc.record(
  {
    timeUnixNano: nanos,
    observedTimeUnixNano: nanos,
    severityNumber: fc.integer({ min: 0, max: 24 }),
    severityText: string,
    eventName: string,
    body: anyValue,
    attributes,
    droppedAttributesCount: fc.nat(),
    flags: fc.nat(),
    traceId: hex(16),
    spanId: hex(8),
  },
  { requiredKeys: [] },
);
const request = fc.record({
  resourceLogs: fc.array(
    fc.record({
      resource: fc.record({ attributes }),
      scopeLogs: fc.array(
        fc.record({
          scope: fc.record({ name: string, version: string, attributes }),
          logRecords: fc.array(logRecord, { maxLength: 3 }),
          schemaUrl: string,
        }),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 2 },
  ),
});

/** protobufjs encodes the message, so three implementations must agree. */
test('random messages decode to the same records from protobuf and from JSON', () => {
  fc.assert(
    fc.property(request, message => {
      // Both encodings are UTF-8, so a lone surrogate becomes U+FFFD.
      const json = Buffer.from(JSON.stringify(message).toWellFormed()).toString();
      expect([...decodeOtlpProtobuf(encodeOtlp(JSON.parse(json)))]).toEqual([...decodeOtlpJson(json)]);
    }),
    { numRuns: 300 },
  );
});

test('random changes to a message never cause another error than that of a malformed body', () => {
  const change = fc.record({
    at: fc.nat(),
    byte: fc.nat(255),
    kind: fc.constantFrom('set', 'insert', 'cut'),
  });
  fc.assert(
    fc.property(request, fc.array(change, { minLength: 1, maxLength: 5 }), (message, changes) => {
      const bytes = [...encodeOtlp(message)];
      for (const { at, byte, kind } of changes) {
        const index = at % (bytes.length + 1);
        if (kind === 'set') bytes[index] = byte;
        else if (kind === 'insert') bytes.splice(index, 0, byte);
        else bytes.length = index;
      }
      try {
        JSON.stringify([...toIntakeRecords(decodeOtlpProtobuf(Buffer.from(bytes)), ALL_KINDS)]);
      } catch (error) {
        expect(error).toBeInstanceOf(DendroError);
        expect((error as DendroError).code).toBe('invalid_body');
      }
    }),
    { numRuns: 500 },
  );
});

/** A request with one record, whose body is this AnyValue. */
const requestWithBody = (body: Uint8Array) => field(1, field(2, field(2, field(5, body))));

describe('the wire format', () => {
  const entriesOf = (bytes: Uint8Array) => [...decodeOtlpProtobuf(bytes)];
  const intakeRecordsOf = (bytes: Uint8Array) => [...toIntakeRecords(decodeOtlpProtobuf(bytes), ALL_KINDS)];

  test('a resource after its records counts for them', () => {
    const keyValue = Buffer.concat([field(1, Buffer.from('k')), field(2, field(1, Buffer.from('v')))]);
    const scopeLogs = field(2, field(2, field(5, field(1, Buffer.from('a')))));
    const [entry] = entriesOf(field(1, Buffer.concat([scopeLogs, field(1, field(1, keyValue))])));
    expect(entry).toMatchObject({ resource: { k: 'v' }, record: { body: 'a' } });
  });

  test('bytes that are not UTF-8 become U+FFFD', () => {
    expect(entriesOf(requestWithBody(field(1, Buffer.from([0x61, 0xff]))))[0]?.record.body).toBe('a\ufffd');
  });

  test('ids are bytes, or their hexadecimal digits as text', () => {
    const idsOf = (trace: Buffer, span: Buffer) => {
      const record = Buffer.concat([field(9, trace), field(10, span)]);
      return entriesOf(field(1, field(2, field(2, record)))).map(entry => [
        entry.record.traceId,
        entry.record.spanId,
      ])[0];
    };
    const [trace, span] = ['5b8efff798038103d269b633813fc60c', 'eee19b7ec3c1b174'];
    expect(idsOf(Buffer.from(trace, 'hex'), Buffer.from(span, 'hex'))).toEqual([trace, span]);
    expect(idsOf(Buffer.from(trace.toUpperCase()), Buffer.from(span))).toEqual([trace, span]);
    const notDigits = 'x'.repeat(32);
    expect(idsOf(Buffer.from(notDigits), Buffer.from(trace))).toEqual([
      Buffer.from(notDigits).toString('hex'),
      Buffer.from(trace).toString('hex'),
    ]);
  });

  test('arrays beyond 64 levels are not decoded, and take no stack', () => {
    let json: OtlpObject = text('x');
    for (let level = 0; level < 100; level++) json = { arrayValue: { values: [json] } };
    const [fromJson] = decodeOtlpJson(JSON.stringify(otlpRequest({}, [{ body: json }])));
    const [fromProtobuf] = entriesOf(requestWithBody(nestedArrays(100_000)));
    for (const entry of [fromJson, fromProtobuf]) {
      let depth = 0;
      for (let body = entry?.record.body; Array.isArray(body); body = body[0]) depth++;
      expect(depth).toBe(65); // one more than a record may have, so that it is rejected
    }
  });

  test('bytes that are equal to the characters of a cached string, but not to its UTF-8, are decoded', () => {
    const cached = 'ñäääääa'; // has the same slot of the cache as its bytes in Latin-1
    const latin1 = Buffer.from(cached, 'latin1');
    const reader = new ProtobufReader(Buffer.concat([field(1, Buffer.from(cached)), field(1, latin1)]));
    expect(reader.next()).toBe(true);
    expect(reader.internedString()).toBe(cached);
    expect(reader.next()).toBe(true);
    expect(reader.internedString()).toBe(latin1.toString('utf8'));
  });

  test('a large resource with many records gets payload_too_large', () => {
    const resource = { 'service.name': 'edge', large: 'x'.repeat(1024 * 1024) };
    const bytes = encodeOtlp(otlpRequest(resource, Array(100).fill({ body: text('a') })));
    expect(() => intakeRecordsOf(bytes)).toThrow('too many records of a large resource');
  });

  test('five million empty values get payload_too_large', () => {
    const emptyValues = Buffer.alloc(10_000_000, Buffer.from([0x0a, 0x00]));
    expect(() => entriesOf(requestWithBody(field(5, emptyValues)))).toThrow('too many values');
  });
});
