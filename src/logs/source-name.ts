// The names by which senders identify each log kind.
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';

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
  pooler: ['pgbouncer_logs', 'pgbouncer.logs.prod'],
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
