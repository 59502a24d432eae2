import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { ACCEPTED_NAMES, kindOf } from '../../src/logs/source-name.ts';

describe('the names of log kinds', () => {
  test.each([
    ['edge', 'edge_logs', 'cloudflare.logs.prod'],
    ['postgres', 'postgres_logs', 'postgres.logs'],
    ['function_edge', 'function_edge_logs', 'deno-relay-logs'],
    ['function', 'function_logs', 'deno-subhosting-events'],
    ['auth', 'auth_logs', 'gotrue.logs.prod'],
    ['realtime', 'realtime_logs', 'realtime.logs.prod'],
    ['storage', 'storage_logs', 'storage.logs.prod.2'],
    ['rest', 'postgrest_logs', 'postgREST.logs.prod'],
    ['pooler', 'pgbouncer_logs', 'pgbouncer.logs.prod'],
  ])('%s is also accepted as %s and %s', (kind, ...names) => {
    for (const name of [kind, ...names]) expect(kindOf(name)).toBe(kind);
  });

  test('names match exactly: letter case, spaces and the names of object members are unknown', () => {
    for (const name of [
      'Edge',
      'postgrest.logs.prod',
      ' edge',
      'edge ',
      '',
      '__proto__',
      'constructor',
      'toString',
    ]) {
      expect(kindOf(name)).toBeUndefined();
    }
  });

  test('the list of accepted names holds every kind and every name once, and each is known', () => {
    expect(ACCEPTED_NAMES).toHaveLength(3 * LOG_KINDS.length);
    expect(new Set(ACCEPTED_NAMES).size).toBe(ACCEPTED_NAMES.length);
    for (const kind of LOG_KINDS) expect(ACCEPTED_NAMES).toContain(kind);
    for (const name of ACCEPTED_NAMES) expect(kindOf(name)).toBeDefined();
  });
});
