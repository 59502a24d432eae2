// Encodes OTLP requests and decodes OTLP responses with protobufjs, so that tests do not depend on the code they test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { API_KEY } from './app.ts';

const { root } = protobuf.parse(readFileSync(join(import.meta.dirname, 'otlp-logs.proto'), 'utf8'));
const Request = root.lookupType('ExportLogsServiceRequest');

export type OtlpObject = Readonly<Record<string, unknown>>;

/** Encodes a request in the form of its JSON encoding. Its trace and span ids are hexadecimal. */
export function encodeOtlp(request: OtlpObject): Buffer {
  const text = JSON.stringify(request, (key, value) =>
    key === 'traceId' || key === 'spanId' ? Buffer.from(value, 'hex').toString('base64') : value,
  );
  return Buffer.from(Request.encode(Request.fromObject(JSON.parse(text))).finish());
}

/** Decodes a message into its JSON encoding. */
export function decodeMessage(
  type: 'ExportLogsServiceRequest' | 'ExportLogsServiceResponse' | 'Status',
  data: Uint8Array,
): OtlpObject {
  const message = root.lookupType(type);
  return message.toObject(message.decode(data), { longs: String, bytes: String });
}

/** A length-delimited field. */
export function field(number: number, content: Uint8Array): Buffer {
  return Buffer.concat([fieldHeader(number, content.length), content]);
}

function fieldHeader(number: number, length: number): Buffer {
  const header = [number * 8 + 2];
  for (let rest = length; ; rest = Math.floor(rest / 128)) {
    header.push(rest < 128 ? rest : (rest % 128) + 128);
    if (rest < 128) return Buffer.from(header);
  }
}

/** An AnyValue with arrays nested so deeply that protobufjs would not encode it. */
export function nestedArrays(levels: number): Buffer {
  const headers: Buffer[] = [];
  let length = 0;
  for (let level = 0; level < levels; level++)
    for (const number of [1, 5]) {
      const header = fieldHeader(number, length);
      headers.push(header);
      length += header.length;
    }
  return Buffer.concat(headers.reverse());
}

export const text = (stringValue: string) => ({ stringValue });
export const attribute = (key: string, value: OtlpObject) => ({ key, value });

/** A request with one resource, whose attributes are strings. */
export function otlpRequest(
  resource: Readonly<Record<string, string>>,
  logRecords: readonly OtlpObject[],
): OtlpObject & { readonly resourceLogs: readonly OtlpObject[] } {
  const attributes = Object.entries(resource).map(([key, value]) => attribute(key, text(value)));
  return { resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords }] }] };
}

export interface OtlpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The decoded response message or, for an error, the Status. */
  readonly message: OtlpObject;
}

export interface OtlpOptions {
  readonly query?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends an object as protobuf, a string as JSON, and bytes as protobuf without a change. */
export async function sendOtlp(
  internalUrl: string,
  request: OtlpObject | string | Uint8Array,
  { query = '', token = API_KEY, headers = {} }: OtlpOptions = {},
): Promise<OtlpResponse> {
  const isJson = typeof request === 'string';
  const bytes =
    request instanceof Uint8Array ? request : isJson ? request : encodeOtlp(request as OtlpObject);
  const response = await fetch(`${internalUrl}/v1/logs${query}`, {
    method: 'POST',
    body: bytes as string | Uint8Array<ArrayBuffer>,
    headers: {
      'X-API-KEY': token,
      'Content-Type': isJson ? 'application/json' : 'application/x-protobuf',
      ...headers,
    },
  });
  const body = Buffer.from(await response.arrayBuffer());
  const type = response.status === 200 ? 'ExportLogsServiceResponse' : 'Status';
  const isJsonResponse = response.headers.get('content-type') === 'application/json';
  const message = isJsonResponse ? JSON.parse(body.toString()) : decodeMessage(type, body);
  return { status: response.status, headers: response.headers, body, message };
}
