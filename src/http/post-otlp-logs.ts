// POST /v1/logs: log records of the OpenTelemetry protocol (OTLP/HTTP), as protobuf or JSON. Differs from POST /api/logs in the
// format of the body and of the response, and in that each record can have its own log kind.
import { DendroError } from '../domain/errors.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import type { RejectCode } from '../logs/rejection.ts';
import { kindOf, type OtlpKindRules } from '../logs/source-name.ts';
import { allows, type Token } from '../token/token.ts';
import { authenticate } from './authenticate.ts';
import { missingScopeError } from './error-response.ts';
import { otlpEncodingOf, otlpResponse } from './otlp-response.ts';
import { acceptBody, conflictingSources, readSourceNames } from './post-logs.ts';
import type { HttpResponse } from './response.ts';
import type { HttpRequest } from './router.ts';
import type { ServingDependencies } from './serving.ts';

export async function postOtlpLogs(
  serving: ServingDependencies,
  request: HttpRequest,
): Promise<HttpResponse> {
  const token = authenticate(serving, request.raw);
  const kindRules = readKindRules(token, request);
  const encoding = otlpEncodingOf(request.raw);
  if (encoding === undefined)
    throw new DendroError(
      'unsupported_media_type',
      'the Content-Type is not supported; supported: application/x-protobuf, application/json',
    );
  const { result, reportDelivery } = await acceptBody(serving, request, token, {
    kind: kindRules,
    format: `otlp-${encoding}`,
  });
  const messages = result.errors
    .filter(({ code }) => LOGGED_CODES.includes(code))
    .map(({ message }) => message);
  for (const message of new Set(messages))
    serving.observe({ type: 'otlp_records_rejected', tokenName: token.name, message });
  return { ...otlpResponse(result, encoding), reportDelivery };
}

/** What the operator can fix. The sender gets 200, and exporters do not show its `partialSuccess`. */
const LOGGED_CODES: readonly RejectCode[] = [
  'unknown_source',
  'kind_not_allowed',
  'no_project',
  'project_not_allowed',
];

/**
 * If the request names a source, that source applies to all records, and a token that may not send its kind gets `forbidden`.
 * Otherwise each record has its own kind, and records of a kind that the token may not send are rejected.
 */
function readKindRules(token: Token, { raw, parameters }: HttpRequest): OtlpKindRules {
  const header = raw.headers['x-source'];
  const headerName = typeof header === 'string' && header !== '' ? header : undefined;
  const names = readSourceNames(parameters);
  const sourceName = names[0] ?? headerName;
  const allowedKinds = LOG_KINDS.filter(kind => allows(token, 'ingest', kind));
  const hasConflict = new Set(names.map(kindOf)).size > 1;
  // If the sources conflict or the source is unknown, only the scope `ingest` for all kinds allows the request.
  const kind = sourceName === undefined || hasConflict ? undefined : kindOf(sourceName);
  const isAllowed = sourceName === undefined ? allowedKinds.length > 0 : allows(token, 'ingest', kind);
  if (!isAllowed) throw missingScopeError(token, 'ingest', ...(kind === undefined ? [] : [`ingest:${kind}`]));
  if (hasConflict) throw conflictingSources('the values of source_name and source');
  return { sourceName, allowedKinds };
}
