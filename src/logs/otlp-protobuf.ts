// Decodes the OTLP message ExportLogsServiceRequest from protobuf. Written by hand, because that is several times as fast as the
// libraries (docs/decisions/0022-otlp-decoder.md). Skips the fields that Dendro does not use. The field numbers are those of
// logs.proto, common.proto and resource.proto in opentelemetry-proto.
import { toExactNumber } from './exact-json.ts';
import { type JsonObject, setField } from './json-object.ts';
import {
  createOtlpRecord,
  MAX_VALUE_LEVELS,
  type OtlpEntry,
  type OtlpRecord,
  toScope,
} from './otlp-record.ts';
import { tooManyValues } from './parse.ts';
import { ProtobufReader } from './protobuf-reader.ts';

/** The same limit as for a JSON body (intake/decode-body.ts): an empty value takes only 2 bytes in the body, and far more in memory. */
const MAX_VALUES = 4 * 1024 * 1024;

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
        record.traceId = reader.bytes('hex');
        break;
      case 10:
        record.spanId = reader.bytes('hex');
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
    if (++this.#valueCount > MAX_VALUES) throw tooManyValues();
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
          value = reader.bytes('base64');
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
