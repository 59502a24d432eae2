// The responses of OTLP/HTTP: ExportLogsServiceResponse for 200 and google.rpc.Status for errors, in the encoding of the request.
import type { IncomingMessage } from 'node:http';
import type { DendroError, ErrorCode } from '../domain/errors.ts';
import type { IntakeResult } from '../intake/completed-request.ts';
import { headersOf, STATUS_BY_CODE } from './error-response.ts';
import { mediaTypeOf } from './request-body.ts';
import { type HttpResponse, toHeaderList } from './response.ts';

export type OtlpEncoding = 'protobuf' | 'json';

const MEDIA_TYPES: Readonly<Record<OtlpEncoding, string>> = {
  protobuf: 'application/x-protobuf',
  json: 'application/json',
};

/** Undefined if the Content-Type of the request is neither of the two. */
export function otlpEncodingOf({ headers }: IncomingMessage): OtlpEncoding | undefined {
  const mediaType = mediaTypeOf(headers['content-type'] ?? '');
  return (['protobuf', 'json'] as const).find(encoding => MEDIA_TYPES[encoding] === mediaType);
}

/** Without rejected records, the response is an empty message. */
export function otlpResponse(
  { accepted, rejected, errors }: IntakeResult,
  encoding: OtlpEncoding,
): HttpResponse {
  if (rejected === 0) return createResponse(200, encoding, '{}', Buffer.alloc(0));
  // Many records are usually rejected for the same reason, so the message has only the first record of each reason.
  const firsts = errors.filter(
    (error, index) => errors.findIndex(({ message }) => message === error.message) === index,
  );
  const reasons = firsts.map(({ index, message }) => `Record ${index}: ${message}`);
  const errorMessage = `${rejected} of ${accepted + rejected} records were rejected. ${reasons.join(' ')}`;
  // Protobuf's JSON mapping writes a 64-bit integer as a string.
  const json = { partialSuccess: { rejectedLogRecords: String(rejected), errorMessage } };
  const partialSuccess = Buffer.concat([encodeInteger(1, rejected), encodeText(2, errorMessage)]);
  return createResponse(200, encoding, JSON.stringify(json), encodeBytes(1, partialSuccess));
}

/** If the encoding of the request is unknown, the error is JSON. */
export function otlpErrorResponse(error: DendroError, rawRequest: IncomingMessage): HttpResponse {
  const encoding = otlpEncodingOf(rawRequest) ?? 'json';
  const code = RPC_CODES[error.code] ?? INVALID_ARGUMENT;
  const { message } = error;
  return createResponse(
    STATUS_BY_CODE[error.code],
    encoding,
    JSON.stringify({ code, message }),
    Buffer.concat([encodeInteger(1, code), encodeText(2, message)]),
    headersOf(error),
  );
}

/** The google.rpc.Code of each error code. An error code that is not listed becomes INVALID_ARGUMENT. */
const RPC_CODES: Partial<Record<ErrorCode, number>> = {
  request_timeout: 4, // DEADLINE_EXCEEDED
  forbidden: 7, // PERMISSION_DENIED
  rate_limited: 8, // RESOURCE_EXHAUSTED
  internal: 13, // INTERNAL
  unavailable: 14, // UNAVAILABLE
  unauthorized: 16, // UNAUTHENTICATED
};
const INVALID_ARGUMENT = 3;

function createResponse(
  status: number,
  encoding: OtlpEncoding,
  json: string,
  protobuf: Buffer,
  headers: Record<string, string> = {},
): HttpResponse {
  return {
    status,
    headers: toHeaderList({ 'Content-Type': MEDIA_TYPES[encoding], 'Cache-Control': 'no-store', ...headers }),
    body: encoding === 'json' ? json : protobuf,
  };
}

/** A varint field: wire type 0. */
function encodeInteger(field: number, value: number): Buffer {
  return Buffer.from([field * 8, ...varint(value)]);
}

function encodeText(field: number, text: string): Buffer {
  return encodeBytes(field, Buffer.from(text));
}

/** A length-delimited field: wire type 2. */
function encodeBytes(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([field * 8 + 2, ...varint(bytes.length)]), bytes]);
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
