// Decodes the OTLP message ExportLogsServiceRequest from protobuf. Written by hand, because that is several times as fast as the
// libraries (docs/decisions/0022-otlp-decoder.md). Skips the fields that Dendro does not use. The field numbers are those of
// logs.proto, common.proto and resource.proto in opentelemetry-proto.
import { DendroError } from '../domain/errors.ts';
import { MAX_OTLP_VALUES } from '../domain/limits.ts';
import type { JsonObject } from '../system/parse-json.ts';
import { toExactNumber } from './exact-json.ts';
import { setField } from './json-object.ts';
import {
  createOtlpRecord,
  MAX_VALUE_LEVELS,
  type OtlpEntry,
  type OtlpRecord,
  toScope,
} from './otlp-record.ts';
import { tooManyValues } from './parse.ts';

/** Throws `invalid_body` if the bytes are not a message, and `payload_too_large` if it has too many values. */
export function* decodeOtlpProtobuf(data: Uint8Array): Generator<OtlpEntry> {
  const decoder = new Decoder(data);
  const { reader } = decoder;
  while (reader.skipTo(1)) {
    const requestEnd = reader.enter(); // `enter` returns the end of the outer message
    const resource = decoder.readResource();
    while (reader.skipTo(2)) {
      const resourceLogsEnd = reader.enter();
      const scope = decoder.readScope();
      while (reader.skipTo(2)) yield { resource, scope, record: decoder.readRecord() };
      reader.leave(resourceLogsEnd);
    }
    reader.leave(requestEnd);
  }
}

type Fields = Record<string, unknown>;

class Decoder {
  readonly reader: ProtobufReader;
  #valueCount = 0;

  constructor(data: Uint8Array) {
    this.reader = new ProtobufReader(data);
  }

  /** Reads the attributes of the resource in a message ResourceLogs, and returns to the start: the resource may be its last field. */
  readResource(): JsonObject {
    const { reader } = this;
    const start = reader.position;
    const attributes: Fields = {};
    while (reader.skipTo(1)) {
      const outerEnd = reader.enter();
      while (reader.skipTo(1)) this.#addAttribute(attributes, MAX_VALUE_LEVELS);
      reader.leave(outerEnd);
    }
    reader.returnTo(start);
    return attributes;
  }

  /** Reads the scope in a message ScopeLogs, and returns to the start. */
  readScope(): JsonObject {
    const { reader } = this;
    const start = reader.position;
    let name = '';
    let version = '';
    const attributes: Fields = {};
    while (reader.skipTo(1)) {
      const outerEnd = reader.enter();
      while (reader.next()) {
        if (reader.field === 1) name = reader.string();
        else if (reader.field === 2) version = reader.string();
        else if (reader.field === 3) this.#addAttribute(attributes, MAX_VALUE_LEVELS);
        else reader.skip();
      }
      reader.leave(outerEnd);
    }
    reader.returnTo(start);
    return toScope(name, version, attributes);
  }

  readRecord(): OtlpRecord {
    const record = createOtlpRecord();
    const outerEnd = this.reader.enter();
    while (this.reader.next()) this.#readRecordField(record);
    this.reader.leave(outerEnd);
    return record;
  }

  #readRecordField(record: OtlpRecord): void {
    const { reader } = this;
    switch (reader.field) {
      case 1:
        record.timeMicros = reader.nanosAsMicros();
        break;
      case 2:
        record.severityNumber = Number(reader.int64());
        break;
      case 3:
        record.severityText = reader.internedString();
        break;
      case 5:
        record.body = this.#readValue(MAX_VALUE_LEVELS);
        break;
      case 6:
        this.#addAttribute(record.attributes, MAX_VALUE_LEVELS);
        break;
      case 9:
        record.traceId = reader.id(16);
        break;
      case 10:
        record.spanId = reader.id(8);
        break;
      case 11:
        record.observedMicros = reader.nanosAsMicros();
        break;
      case 12:
        record.eventName = reader.internedString();
        break;
      default:
        reader.skip();
    }
  }

  /** Reads a message KeyValue. */
  #addAttribute(attributes: Fields, levels: number): void {
    const { reader } = this;
    const outerEnd = reader.enter();
    let key = '';
    let value: unknown = null;
    while (reader.next()) {
      if (reader.field === 1) key = reader.internedString();
      else if (reader.field === 2) value = this.#readValue(levels);
      else reader.skip();
    }
    reader.leave(outerEnd);
    setField(attributes, key, value);
  }

  /** Reads a message AnyValue. `levels`: how many levels of arrays and key-value lists are decoded. */
  #readValue(levels: number): unknown {
    if (++this.#valueCount > MAX_OTLP_VALUES) throw tooManyValues();
    const { reader } = this;
    const outerEnd = reader.enter();
    let value: unknown = null;
    while (reader.next()) {
      switch (reader.field) {
        case 1:
          value = reader.string();
          break;
        case 2:
          value = reader.bool();
          break;
        case 3:
          value = toJsonInteger(reader.int64());
          break;
        case 4:
          value = toJsonNumber(reader.double());
          break;
        case 5:
          value = this.#readArray(levels);
          break;
        case 6:
          value = this.#readKeyValueList(levels);
          break;
        case 7:
          value = reader.base64();
          break;
        default:
          reader.skip();
      }
    }
    reader.leave(outerEnd);
    return value;
  }

  #readArray(levels: number): unknown[] {
    const { reader } = this;
    const items: unknown[] = [];
    const outerEnd = reader.enter();
    while (levels > 0 && reader.skipTo(1)) items.push(this.#readValue(levels - 1));
    reader.leave(outerEnd);
    return items;
  }

  #readKeyValueList(levels: number): JsonObject {
    const { reader } = this;
    const object: Fields = {};
    const outerEnd = reader.enter();
    while (levels > 0 && reader.skipTo(1)) this.#addAttribute(object, levels - 1);
    reader.leave(outerEnd);
    return object;
  }
}

function toJsonInteger(integer: number | bigint): unknown {
  return typeof integer === 'number' ? integer : toExactNumber(String(integer));
}

/** JSON has no NaN and no infinities. Protobuf's JSON mapping writes them as strings. */
function toJsonNumber(number: number): number | string {
  return Number.isFinite(number) ? number : String(number);
}

/** The wire types of proto3. Groups (3 and 4) are older, and no message of OTLP has one. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

const MAX_FIELD_NUMBER = 2 ** 29 - 1;
/** A varint of 7 bytes has 49 bits, which a double represents exactly. */
const MAX_NUMBER_BYTES = 7;
const MAX_VARINT_BYTES = 10;
const MAX_INTERNED_BYTES = 64;
const INTERNED_STRINGS = 1024;
const MAX_ASCII = 0x7f;
const HEX_DIGITS = /^[0-9a-f]+$/i;

/** Buffer.toString selects one of these. They are called directly, because selecting takes a tenth of the decoding time. */
interface SliceableBuffer extends Buffer {
  utf8Slice(start: number, end: number): string;
  hexSlice(start: number, end: number): string;
  base64Slice(start: number, end: number): string;
}

/**
 * Reads the Protocol Buffers wire format: the fields of a message and of the messages in it, one after the other. Every read is
 * checked against the end of the message, so no input can make it read beyond. Throws `invalid_body` if the bytes are malformed.
 * One reader for the whole body: creating a reader for each message would take a third of the decoding time.
 */
export class ProtobufReader {
  readonly #data: SliceableBuffer;
  #position = 0;
  /** The end of the current message. */
  #end: number;
  #wireType = 0;
  /** The number of the current field. */
  field = 0;
  /** Strings that `internedString` read before. */
  readonly #interned = new Array<string>(INTERNED_STRINGS).fill('');

  constructor(data: Uint8Array) {
    this.#data = Buffer.from(data.buffer, data.byteOffset, data.byteLength) as SliceableBuffer;
    this.#end = data.byteLength;
  }

  /** Moves to the next field. Returns false at the end of the message. The caller must read the field or skip it. */
  next(): boolean {
    if (this.#position === this.#end) return false;
    const tag = this.#tagOrLength();
    this.#wireType = tag % 8;
    this.field = (tag - this.#wireType) / 8;
    if (this.field < 1 || this.field > MAX_FIELD_NUMBER)
      throw invalidMessage(`field number ${this.field} is not valid`);
    return true;
  }

  /** Moves to the next field with this number. Returns false if there is none. */
  skipTo(field: number): boolean {
    while (this.next()) {
      if (this.field === field) return true;
      this.skip();
    }
    return false;
  }

  /** Enters the message in the current field. Returns the end of the outer message, for `leave`. */
  enter(): number {
    const start = this.#takeDelimited();
    const outerEnd = this.#end;
    this.#end = this.#position;
    this.#position = start;
    return outerEnd;
  }

  /** Leaves the current message, whether or not it was read to its end. */
  leave(outerEnd: number): void {
    this.#position = this.#end;
    this.#end = outerEnd;
  }

  /** The current position. The caller can return to it within the same message. */
  get position(): number {
    return this.#position;
  }

  returnTo(position: number): void {
    this.#position = position;
  }

  /** Invalid UTF-8 becomes U+FFFD. */
  string(): string {
    const start = this.#takeDelimited();
    return this.#data.utf8Slice(start, this.#position);
  }

  /**
   * Reads a string that repeats in many records, such as an attribute key. Returns the cached string if the bytes are equal, because
   * comparing is faster than creating a string.
   */
  internedString(): string {
    const start = this.#takeDelimited();
    const length = this.#position - start;
    if (length === 0 || length > MAX_INTERNED_BYTES) return this.#data.utf8Slice(start, this.#position);
    const first = this.#data[start] ?? 0;
    const last = this.#data[this.#position - 1] ?? 0;
    const slot = (length * 67 + first * 31 + last) % INTERNED_STRINGS;
    const cached = this.#interned[slot] ?? '';
    if (this.#isAt(cached, start, length)) return cached;
    const string = this.#data.utf8Slice(start, this.#position);
    this.#interned[slot] = string;
    return string;
  }

  /** Whether these bytes encode the string. False if it is not ASCII: its character codes are then not its UTF-8 bytes. */
  #isAt(string: string, start: number, length: number): boolean {
    if (string.length !== length) return false;
    for (let index = 0; index < length; index++) {
      const code = string.charCodeAt(index);
      if (code > MAX_ASCII || code !== this.#data[start + index]) return false;
    }
    return true;
  }

  base64(): string {
    const start = this.#takeDelimited();
    return this.#data.base64Slice(start, this.#position);
  }

  /** An id in hexadecimal. Supabase's drain sends these digits as text, which takes twice the bytes of an id. */
  id(byteLength: number): string {
    const start = this.#takeDelimited();
    if (this.#position - start === 2 * byteLength) {
      const text = this.#data.utf8Slice(start, this.#position);
      if (HEX_DIGITS.test(text)) return text.toLowerCase();
    }
    return this.#data.hexSlice(start, this.#position);
  }

  bool(): boolean {
    return Number(this.int64()) !== 0;
  }

  /** A number if the integer takes at most 7 bytes, otherwise a bigint. */
  int64(): number | bigint {
    this.#expect(VARINT);
    return this.#varint();
  }

  double(): number {
    return this.#data.readDoubleLE(this.#takeFixed64());
  }

  /** A time in nanoseconds, a fixed64, rounded down to microseconds. Exact until the year 2255. */
  nanosAsMicros(): number {
    const start = this.#takeFixed64();
    const low = this.#data.readUInt32LE(start);
    const high = this.#data.readUInt32LE(start + 4);
    // 2^32 ns are 4,294,967 µs and 296 ns. A double cannot represent the nanoseconds themselves.
    return high * 4_294_967 + Math.floor((high * 296 + low) / 1000);
  }

  skip(): void {
    switch (this.#wireType) {
      case VARINT:
        this.#varint();
        break;
      case FIXED64:
        this.#take(8);
        break;
      case LENGTH_DELIMITED:
        this.#take(this.#tagOrLength());
        break;
      case FIXED32:
        this.#take(4);
        break;
      default:
        throw invalidMessage(`field ${this.field} has the unknown wire type ${this.#wireType}`);
    }
  }

  #takeDelimited(): number {
    this.#expect(LENGTH_DELIMITED);
    return this.#take(this.#tagOrLength());
  }

  #takeFixed64(): number {
    this.#expect(FIXED64);
    return this.#take(8);
  }

  #expect(wireType: number): void {
    if (this.#wireType !== wireType)
      throw invalidMessage(`field ${this.field} has the wire type ${this.#wireType} instead of ${wireType}`);
  }

  /** Moves past the next bytes and returns where they start. */
  #take(byteLength: number): number {
    const start = this.#position;
    if (byteLength > this.#end - start) throw truncated();
    this.#position = start + byteLength;
    return start;
  }

  /** A tag or the length of a field. */
  #tagOrLength(): number {
    const value = this.#varint();
    if (typeof value === 'bigint') throw truncated(); // no tag or length in a body is that large
    return value;
  }

  #varint(): number | bigint {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < MAX_NUMBER_BYTES; count++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    let long = BigInt(value);
    for (let count = MAX_NUMBER_BYTES; count < MAX_VARINT_BYTES; count++) {
      const byte = this.#byte();
      long |= BigInt(byte & 0x7f) << BigInt(7 * count);
      if (byte < 0x80) return BigInt.asIntN(64, long);
    }
    throw invalidMessage('an integer has more than 10 bytes');
  }

  #byte(): number {
    if (this.#position >= this.#end) throw truncated();
    return this.#data[this.#position++] ?? 0;
  }
}

function truncated(): DendroError {
  return invalidMessage('it is truncated, or a length in it is wrong');
}

function invalidMessage(reason: string): DendroError {
  return new DendroError('invalid_body', `the body is not a valid protobuf message: ${reason}`);
}
