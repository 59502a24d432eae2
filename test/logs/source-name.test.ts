import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { ACCEPTED_NAMES, kindOf } from '../../src/logs/source-name.ts';

describe('source names of log kinds', () => {
  test.each([
    ['edge', 'edge_logs', 'cloudflare.logs.prod'],
    ['postgres', 'postgres_logs', 'postgres.logs'],
    ['function_edge', 'function_edge_logs', 'deno-relay-logs'],
    ['function', 'function_logs', 'deno-subhosting-events'],
    ['auth', 'auth_logs', 'gotrue.logs.prod'],
    ['realtime', 'realtime_logs', 'realtime.logs.prod'],
    ['storage', 'storage_logs', 'storage.logs.prod.2'],
    ['rest', 'postgrest_logs', 'postgREST.logs.prod'],
    ['pooler', 'pgbouncer_logs', 'pgbouncer.logs.prod', 'supavisor_logs'],
  ])('%s is also accepted as %s and %s %s', (kind, ...names) => {
    for (const name of [kind, ...names]) expect(kindOf(name)).toBe(kind);
  });

  test('names with other letter case or spaces and names of object members are unknown', () => {
    const members = ['__proto__', 'constructor', 'toString'];
    for (const name of ['Edge', 'postgrest.logs.prod', ' edge', 'edge ', '', ...members])
      expect(kindOf(name)).toBeUndefined();
  });

  test('ACCEPTED_NAMES contains every kind and every source name once', () => {
    expect(ACCEPTED_NAMES).toHaveLength(3 * LOG_KINDS.length + 1);
    expect(new Set(ACCEPTED_NAMES).size).toBe(ACCEPTED_NAMES.length);
    for (const kind of LOG_KINDS) expect(ACCEPTED_NAMES).toContain(kind);
    for (const name of ACCEPTED_NAMES) expect(kindOf(name)).toBeDefined();
  });
});
