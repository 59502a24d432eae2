// POST /api/logs: reads the request's log kind, format and idempotency key, and responds when the accepted records are
// durable. Requests with the same token count as requests of one sender.
import type { IncomingHttpHeaders } from 'node:http';
import { suggest } from '../domain/closest-name.ts';
import { DendroError } from '../domain/errors.ts';
import { MAX_BODY_BYTES, MAX_IDEMPOTENCY_KEY_LENGTH } from '../domain/limits.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { IntakeResult } from '../intake/completed-request.ts';
import { type BodyFormat, bodyTooLarge } from '../intake/decode-body.ts';
import type { AcceptedRequest, IntakeRequest } from '../intake/intake.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import { allows, type Token } from '../token/token.ts';
import { authenticate } from './authenticate.ts';
import { missingScopeError } from './error-response.ts';
import { mediaTypeOf, readRequestBody } from './request-body.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import type { HttpRequest } from './router.ts';
import type { ServingDependencies } from './serving.ts';

/** Of an unknown name that the client sent. */
const MAX_SHOWN_LENGTH = 64;

export async function postLogs(serving: ServingDependencies, request: HttpRequest): Promise<HttpResponse> {
  const token = authenticate(serving, request.raw);
  const kind = readKind(token, request);
  const format = readFormat(request.raw.headers['content-type']);
  const { result, reportDelivery } = await acceptBody(serving, request, token, { kind, format });
  return { ...intakeResponse(result), reportDelivery };
}

/** Reads the body of the request and passes it to the intake. Resolves when the accepted records are durable. */
export async function acceptBody(
  { intake, uploadRate }: ServingDependencies,
  { raw, signal }: HttpRequest,
  token: Token,
  content: Pick<IntakeRequest, 'kind' | 'format'>,
): Promise<AcceptedRequest> {
  const memory = intake.openBodyMemory(token.sha256);
  try {
    const data = await readRequestBody(raw, {
      maxBytes: MAX_BODY_BYTES,
      tooLarge: bodyTooLarge,
      reserve: memory.reserve,
      uploadRate,
    });
    return await intake.accept({
      ...content,
      data,
      contentCoding: (raw.headers['content-encoding'] ?? '').trim().toLowerCase(),
      sender: token.sha256,
      projects: token.projects,
      idempotencyKey: readIdempotencyKey(raw.headers),
      signal,
    });
  } finally {
    memory.release();
  }
}

/** If a token may send only some log kinds, every other source name gets `forbidden`, even an unknown one. */
function readKind(token: Token, { raw, parameters }: HttpRequest): LogKind {
  const sourceNames = [...readSourceNames(parameters), raw.headers['x-source']].flatMap(name => name || []);
  const kinds = new Set(sourceNames.map(kindOf));
  const [kind] = kinds;
  const isUnambiguous = kind !== undefined && kinds.size === 1;
  if (!allows(token, 'ingest', isUnambiguous ? kind : undefined))
    throw missingScopeError(token, 'ingest', ...(isUnambiguous ? [`ingest:${kind}`] : []));
  if (isUnambiguous) return kind;
  const param = 'source_name';
  const allowed = `allowed: ${ACCEPTED_NAMES.join(', ')}`;
  if (kinds.size === 0)
    throw new DendroError('missing_parameter', `source_name is missing; ${allowed}`, { param });
  const unknown = sourceNames.find(name => kindOf(name) === undefined);
  if (unknown !== undefined) {
    const hint = suggest(unknown.slice(0, MAX_SHOWN_LENGTH), ACCEPTED_NAMES, 'allowed');
    throw new DendroError('invalid_parameter', `source_name is unknown; ${hint}`, { param });
  }
  throw conflictingSources('source_name, source and X-Source');
}

/** The non-empty values of the two parameters that can name the source. */
export function readSourceNames(parameters: URLSearchParams): string[] {
  const names = [...parameters.getAll('source_name'), ...parameters.getAll('source')];
  return names.filter(name => name !== '');
}

export function conflictingSources(where: string): DendroError {
  const message = `${where} specify different log kinds; send only one of them`;
  return new DendroError('invalid_parameter', message, { param: 'source_name' });
}

const FORMATS: Readonly<Record<string, BodyFormat>> = {
  'application/json': 'json',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'application/x-jsonlines': 'ndjson',
  // Some senders use these generic types for JSON.
  'text/plain': 'json',
  'application/octet-stream': 'json',
};

function readFormat(contentType = 'application/json'): BodyFormat {
  const type = mediaTypeOf(contentType);
  const format = Object.hasOwn(FORMATS, type) ? FORMATS[type] : undefined;
  if (format === undefined)
    throw new DendroError(
      'unsupported_media_type',
      'the Content-Type is not supported; supported: application/json, application/x-ndjson',
    );
  return format;
}

function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key'];
  if (typeof key !== 'string' || key === '') return undefined;
  if (key.length > MAX_IDEMPOTENCY_KEY_LENGTH)
    throw new DendroError(
      'invalid_parameter',
      `Idempotency-Key is too long; the limit is ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`,
      {
        param: 'Idempotency-Key',
      },
    );
  return key;
}

function intakeResponse({ accepted, rejected, errors }: IntakeResult): HttpResponse {
  const headers = { 'Cache-Control': 'no-store' };
  if (accepted > 0 || rejected === 0)
    return jsonResponse(200, { message: 'Logged!', accepted, rejected, errors }, headers);
  const message = 'no record was accepted; the field `errors` has the reasons';
  const error = { code: 'nothing_accepted', message };
  return jsonResponse(422, { message: 'Nothing was logged.', accepted, rejected, errors, error }, headers);
}
