// The names by which senders identify each log kind.
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { quote, type Rejection } from './rejection.ts';

// The platform's existing log shippers send these names. Matching is case-sensitive.
const SOURCE_NAMES: Record<LogKind, readonly string[]> = {
  edge: ['edge_logs', 'cloudflare.logs.prod'],
  postgres: ['postgres_logs', 'postgres.logs'],
  function_edge: ['function_edge_logs', 'deno-relay-logs'],
  function: ['function_logs', 'deno-subhosting-events'],
  auth: ['auth_logs', 'gotrue.logs.prod'],
  realtime: ['realtime_logs', 'realtime.logs.prod'],
  storage: ['storage_logs', 'storage.logs.prod.2'],
  rest: ['postgrest_logs', 'postgREST.logs.prod'],
  pooler: ['pgbouncer_logs', 'pgbouncer.logs.prod', 'supavisor_logs'],
};

const KIND_OF_NAME: ReadonlyMap<string, LogKind> = new Map(
  LOG_KINDS.flatMap(kind => [kind, ...SOURCE_NAMES[kind]].map(name => [name, kind] as const)),
);

/** Every name that `kindOf` accepts: for each kind, its own name, then its source names. */
export const ACCEPTED_NAMES: readonly string[] = [...KIND_OF_NAME.keys()];

/** Finds the kind by its own name or by one of its source names. */
export function kindOf(name: string): LogKind | undefined {
  return KIND_OF_NAME.get(name);
}

/** How the kind of each OTLP record is found, and which kinds the token may send. */
export interface OtlpKindRules {
  /** The source of all records. Undefined: each record has its own (`otlpSourceOf`). */
  readonly sourceName: string | undefined;
  /** The kinds that the sender's token may send. */
  readonly allowedKinds: readonly LogKind[];
}

/**
 * The source name of the records of one resource and scope: the first of the two that names a kind; otherwise the only kind that the
 * token may send. Hosted drains of Supabase name the source in `service.name`, and earlier ones in the scope. If the token is for one
 * kind, the scope of a named service does not count: a logger of a service can be called `auth` too.
 */
export function otlpSourceOf(
  { sourceName, allowedKinds }: OtlpKindRules,
  serviceName: string,
  scopeName: string,
): string {
  const onlyKind = allowedKinds.length === 1 ? allowedKinds[0] : undefined;
  const names = serviceName !== '' && onlyKind !== undefined ? [serviceName] : [serviceName, scopeName];
  const known = names.find(name => kindOf(name) !== undefined);
  return sourceName ?? known ?? onlyKind ?? (serviceName || scopeName);
}

/** The kind of a record, or why a record of this source is rejected. */
export type Source =
  | { readonly kind: LogKind }
  | { readonly kind: LogKind | undefined; readonly rejection: Rejection };

/** Finds the kind of an OTLP record by its source name. `name` is empty if the record has none. */
export function readSource(name: string, allowedKinds: readonly LogKind[]): Source {
  const kind = kindOf(name);
  if (kind === undefined) return { kind, rejection: unknownSource(name) };
  return allowedKinds.includes(kind) ? { kind } : { kind, rejection: kindNotAllowed(kind, allowedKinds) };
}

function unknownSource(name: string): Rejection {
  const problem =
    name === '' ? 'The resource of the record has no service.name.' : `The source ${quote(name)} is unknown.`;
  return {
    code: 'unknown_source',
    message: `${problem} Send it with a token for one log kind, such as --scope ingest:function; or set source_name, X-Source or service.name to one of: ${ACCEPTED_NAMES.join(', ')}.`,
  };
}

function kindNotAllowed(kind: LogKind, allowedKinds: readonly LogKind[]): Rejection {
  return {
    code: 'kind_not_allowed',
    message: `The token is not allowed to send records of the kind ${kind}. If service.name or the scope means something else, set source_name or X-Source to ${allowedKinds.join(' or ')}.`,
  };
}
