// POST /api/logs: what the request says of its body, and the answer when its records are durable.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { bodyTooLarge, MAX_BODY_BYTES } from '../intake/decompress.ts';
import type { IntakeResult } from '../intake/idempotency-index.ts';
import type { Intake } from '../intake/intake.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import { allows, type Token } from '../token/token.ts';
import { type AuthDependencies, authenticate } from './authenticate.ts';
import { missingScopeError } from './error-response.ts';
import { readRequestBody } from './request-body.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import type { HttpRequest } from './router.ts';

export async function postLogs(
  service: AuthDependencies & { readonly intake: Intake },
  call: HttpRequest,
): Promise<HttpResponse> {
  const { request } = call;
  const token = await authenticate(service, request);
  const kind = readKind(token, call);
  const format = readForm(request.headers['content-type']);
  const { intake } = service;
  const places: (() => void)[] = [];
  try {
    const bytes = await readRequestBody(request, {
      maxBytes: MAX_BODY_BYTES,
      tooLarge: bodyTooLarge,
      reserve: length => places.push(intake.reserve(length)),
    });
    const answer = await intake.ingest({
      bytes,
      contentCoding: (request.headers['content-encoding'] ?? '').trim().toLowerCase(),
      format,
      kind,
      sender: token.sha256,
      projects: token.projects,
      idempotencyKey: readIdempotencyKey(request.headers),
    });
    return answerReply(answer);
  } finally {
    for (const leave of places) leave();
  }
}

/** A token for some kinds gets `forbidden` for every other source, known or not. */
function readKind(token: Token, { request, parameters }: HttpRequest): LogKind {
  const names = [
    ...parameters.getAll('source_name'),
    ...parameters.getAll('source'),
    request.headers['x-source'],
  ];
  const given = [...new Set(names.flatMap(name => name || []))];
  const [name, ...others] = given;
  const kinds = new Set(given.map(kindOf));
  const [kind] = kinds;
  const isKnown = name !== undefined && kind !== undefined && kinds.size === 1;
  if (!allows(token, 'ingest', isKnown ? kind : undefined)) throw missingScopeError();
  if (isKnown) return kind;
  const param = 'source_name';
  if (name === undefined)
    throw new DendroError(
      'missing_parameter',
      `source_name is missing; known are ${ACCEPTED_NAMES.join(', ')}`,
      {
        param,
      },
    );
  if (others.length > 0 && !kinds.has(undefined))
    throw new DendroError('invalid_parameter', 'source_name, source and X-Source name different kinds', {
      param,
    });
  throw new DendroError(
    'invalid_parameter',
    `source_name is not known; known are ${ACCEPTED_NAMES.join(', ')}`,
    {
      param,
    },
  );
}

const FORMS: Readonly<Record<string, 'json' | 'ndjson'>> = {
  'application/json': 'json',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'application/x-jsonlines': 'ndjson',
  // What shippers send that do not say what they send.
  'text/plain': 'json',
  'application/octet-stream': 'json',
};

function readForm(contentType: string | undefined): 'json' | 'ndjson' {
  const type = (contentType ?? 'application/json').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const form = Object.hasOwn(FORMS, type) ? FORMS[type] : undefined;
  if (form === undefined)
    throw new DendroError(
      'unsupported_media_type',
      'the Content-Type is not known here; known are application/json and application/x-ndjson',
    );
  return form;
}

const MAX_KEY_LENGTH = 255;

function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key'];
  if (typeof key !== 'string' || key === '') return undefined;
  if (key.length > MAX_KEY_LENGTH)
    throw new DendroError(
      'invalid_parameter',
      `Idempotency-Key is longer than ${MAX_KEY_LENGTH} characters`,
      {
        param: 'Idempotency-Key',
      },
    );
  return key;
}

function answerReply({ accepted, rejected, errors }: IntakeResult): HttpResponse {
  const headers = { 'Cache-Control': 'no-store' };
  if (accepted > 0 || rejected === 0)
    return jsonResponse(200, { message: 'Logged!', accepted, rejected, errors }, headers);
  const message = 'none of the records was accepted; errors says why';
  const error = { code: 'nothing_accepted', message };
  return jsonResponse(422, { message: 'Nothing was logged.', accepted, rejected, errors, error }, headers);
}
