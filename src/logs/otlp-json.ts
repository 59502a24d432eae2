// Decodes the OTLP message ExportLogsServiceRequest from JSON: protobuf's JSON mapping, with hexadecimal trace and span ids. Ignores
// unknown fields. A field whose value is null counts as absent.
import { DendroError } from '../domain/errors.ts';
import { isJsonObject, type JsonObject } from '../system/parse-json.ts';
import { exactNumberText, isText, toExactNumber } from './exact-json.ts';
import { setField } from './json-object.ts';
import {
  createOtlpRecord,
  MAX_VALUE_LEVELS,
  type OtlpEntry,
  type OtlpRecord,
  toScope,
} from './otlp-record.ts';
import { parseJsonText } from './parse.ts';

/** Throws `invalid_body` if the text is not JSON, or if a field has another type than in OTLP. */
export function* decodeOtlpJson(text: string): Generator<OtlpEntry> {
  const request = asObject(parseJsonText(text), 'the body');
  for (const resourceLogs of objects(request, 'resourceLogs')) {
    const resource = readAttributes(object(resourceLogs, 'resource'));
    for (const scopeLogs of objects(resourceLogs, 'scopeLogs')) {
      const scope = readScope(object(scopeLogs, 'scope'));
      for (const record of objects(scopeLogs, 'logRecords'))
        yield { resource, scope, record: readRecord(record) };
    }
  }
}

function readScope(scope: JsonObject): JsonObject {
  return toScope(string(scope, 'name'), string(scope, 'version'), readAttributes(scope));
}

function readRecord(record: JsonObject): OtlpRecord {
  return {
    ...createOtlpRecord(),
    timeMicros: nanosAsMicros(record, 'timeUnixNano'),
    observedMicros: nanosAsMicros(record, 'observedTimeUnixNano'),
    severityNumber: integer(record, 'severityNumber'),
    severityText: string(record, 'severityText'),
    eventName: string(record, 'eventName'),
    traceId: hexadecimal(record, 'traceId'),
    spanId: hexadecimal(record, 'spanId'),
    body: toValue(object(record, 'body'), MAX_VALUE_LEVELS),
    attributes: readAttributes(record),
  };
}

function readAttributes(message: JsonObject): Record<string, unknown> {
  return toFields(objects(message, 'attributes'), MAX_VALUE_LEVELS);
}

function toFields(keyValues: readonly JsonObject[], levels: number): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const keyValue of keyValues)
    setField(fields, string(keyValue, 'key'), toValue(object(keyValue, 'value'), levels));
  return fields;
}

/** `levels`: how many levels of arrays and key-value lists are decoded. Those that are nested deeper become empty. */
function toValue(anyValue: JsonObject, levels: number): unknown {
  for (const name in anyValue) {
    const value = anyValue[name];
    const decode = Object.hasOwn(VALUE_DECODERS, name) ? VALUE_DECODERS[name] : undefined;
    if (decode !== undefined && value !== null) return decode(value, levels);
  }
  return null;
}

const VALUE_DECODERS: Readonly<Record<string, (value: unknown, levels: number) => unknown>> = {
  stringValue: value => (isText(value) ? value : wrongType('stringValue', 'a string')),
  boolValue: value => (typeof value === 'boolean' ? value : wrongType('boolValue', 'true or false')),
  intValue: value => toExactNumber(integerText(value, 'intValue')),
  doubleValue: toDouble,
  bytesValue: value => (isText(value) ? value : wrongType('bytesValue', 'a string')),
  arrayValue: (value, levels) => {
    const items = objects(asObject(value, 'arrayValue'), 'values');
    return levels === 0 ? [] : items.map(item => toValue(item, levels - 1));
  },
  kvlistValue: (value, levels) => {
    const keyValues = objects(asObject(value, 'kvlistValue'), 'values');
    return levels === 0 ? {} : toFields(keyValues, levels - 1);
  },
};

/** Protobuf's JSON mapping writes NaN and infinities as strings, and allows a number as a string. */
function toDouble(value: unknown): unknown {
  if (typeof value === 'number' || exactNumberText(value) !== undefined) return value;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return value;
  if (isText(value) && value.trim() !== '' && Number.isFinite(Number(value))) return Number(value);
  return wrongType('doubleValue', 'a number');
}

/** A 64-bit integer is a string or a number. */
function integerText(value: unknown, name: string): string {
  const text = isText(value) ? value : (exactNumberText(value) ?? String(value));
  return /^-?\d{1,20}$/.test(text) ? String(BigInt(text)) : wrongType(name, 'an integer');
}

function integer(message: JsonObject, name: string): number {
  return isAbsent(message, name) ? 0 : Number(integerText(message[name], name));
}

function nanosAsMicros(message: JsonObject, name: string): number {
  if (isAbsent(message, name)) return 0;
  const text = integerText(message[name], name);
  return text.startsWith('-') ? wrongType(name, 'a non-negative integer') : Number(text.slice(0, -3));
}

function string(message: JsonObject, name: string): string {
  const value = message[name];
  if (isAbsent(message, name)) return '';
  return isText(value) ? value : wrongType(name, 'a string');
}

function hexadecimal(message: JsonObject, name: string): string {
  const text = string(message, name);
  return /^[\da-f]*$/i.test(text) ? text.toLowerCase() : wrongType(name, 'a hexadecimal string');
}

function object(message: JsonObject, name: string): JsonObject {
  return isAbsent(message, name) ? {} : asObject(message[name], name);
}

function objects(message: JsonObject, name: string): readonly JsonObject[] {
  if (isAbsent(message, name)) return [];
  const value = message[name];
  return Array.isArray(value) && value.every(isJsonObject) ? value : wrongType(name, 'an array of objects');
}

function isAbsent(message: JsonObject, name: string): boolean {
  return !Object.hasOwn(message, name) || message[name] === null;
}

function asObject(value: unknown, name: string): JsonObject {
  return isJsonObject(value) ? value : wrongType(name, 'an object');
}

function wrongType(name: string, expected: string): never {
  throw new DendroError('invalid_body', `the body is not a valid OTLP message: ${name} is not ${expected}`);
}
