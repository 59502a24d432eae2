import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { edgeRecord, record } from '../support/record.ts';
import { STUDIO_CONFIG } from '../support/studio-client.ts';
import { useApp, useTokens } from '../support/use-app.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
const SQL = 'select id from auth_logs limit 5';
const IDS = 'select id from edge_logs';

describe('the parameter sql of logs.all', () => {
  const tokens = useTokens({
    query: { scopes: ['query'] },
    studio: { scopes: ['query:logs.all', 'studio'] },
    alone: { scopes: ['studio'] },
    pinned: { scopes: ['query', 'studio'], projects: ['alpha'] },
    redacting: { scopes: ['query', 'studio'], redact_pii: true },
    free: { scopes: ['query', 'studio'], tier: 'FREE' },
  });
  const off = useApp({ tokensFile: tokens.file, environmentKeys: STUDIO_CONFIG.environmentKeys });
  const on = useApp({ ...STUDIO_CONFIG, tokensFile: tokens.file, defaultTier: 'PRO' });
  beforeAll(async () => {
    for (const app of [off, on]) {
      await app.append('edge', [
        edgeRecord({ id: 'e1', at: '2026-11-14T12:00:00Z' }),
        edgeRecord({
          id: 'e2',
          at: '2026-11-14T12:00:01Z',
          message: 'from 10.1.2.3',
          metadata: { ip: '10.1.2.3' },
        }),
        edgeRecord({ id: 'old', at: '2026-11-11T12:00:00Z' }),
        edgeRecord({ id: 'older', at: '2026-11-01T12:00:00Z' }),
        edgeRecord({ id: 'beta', at: '2026-11-14T12:00:00Z', project: 'beta' }),
      ]);
      await app.append('auth', [record({ id: 'a1', at: '2026-11-14T11:00:00Z' })]);
    }
  });
  const ask = (parameters: Record<string, string>, token: string = API_KEY, app = on) =>
    app.get(`/api/endpoints/query/logs.all?${new URLSearchParams({ project: 'alpha', ...parameters })}`, {
      headers: { 'X-API-KEY': token },
    });
  const idsOf = ({ rows }: { rows: Record<string, unknown>[] }) => rows.map(row => row['id']);

  test('is ignored without --studio, and Dendro-Ignored names it', async () => {
    for (const sql of [SQL, 'drop table x']) {
      const response = await ask({ sql }, API_KEY, off);
      expect([response.status, idsOf(response)]).toEqual([200, ['e2', 'e1']]);
      expect(response.headers.get('dendro-ignored')).toBe('sql');
      expect(Object.keys(response.rows[0] ?? {})).toEqual(['id', 'timestamp', 'event_message', 'metadata']);
    }
  });

  test('is ignored for a token without the scope studio, and Dendro-Ignored names it', async () => {
    const response = await ask({ sql: SQL }, tokens.secrets.query);
    expect([response.status, idsOf(response)]).toEqual([200, ['e2', 'e1', 'old']]);
    expect(response.headers.get('dendro-ignored')).toBe('sql');
  });

  test('needs a scope that allows logs.all, too', async () => {
    expect((await ask({ sql: SQL }, tokens.secrets.alone)).status).toBe(403);
    expect(idsOf(await ask({ sql: SQL }, tokens.secrets.studio))).toEqual(['a1']);
  });

  test('if it is empty, the rows are those of logs.all', async () => {
    expect(idsOf(await ask({ sql: '' }))).toEqual(['e2', 'e1', 'old']);
  });

  test('given twice is 400', async () => {
    const { status, error } = await on.get(
      `/api/endpoints/query/logs.all?project=alpha&sql=${encodeURIComponent(SQL)}&sql=x`,
    );
    expect([status, error.param]).toEqual([400, 'sql']);
  });

  test('other endpoints ignore it', async () => {
    const path = `/api/endpoints/query/usage.api-counts?project=alpha&interval=hourly&sql=${encodeURIComponent(SQL)}`;
    expect((await on.get(path)).headers.get('dendro-ignored')).toBe('sql');
    const explained = await on.get(
      `/api/endpoints/explain/logs.all?project=alpha&sql=${encodeURIComponent(SQL)}`,
    );
    expect(explained.headers.get('dendro-ignored')).toBe('sql');
  });

  test('an unknown construct is 400 in the usual form', async () => {
    const { status, text, headers } = await ask({ sql: 'select id from edge_logs where id = (select 1)' });
    expect(status).toBe(400);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(JSON.parse(text)).toEqual({
      error: {
        code: 'invalid_parameter',
        message: 'subqueries are not supported, at character 37',
        param: 'sql',
      },
    });
  });

  test('the project is required, and a query sees only its records', async () => {
    const { status, error } = await on.get(`/api/endpoints/query/logs.all?sql=${encodeURIComponent(IDS)}`);
    expect([status, error.code, error.param]).toEqual([400, 'missing_parameter', 'project']);
    expect(idsOf(await ask({ sql: IDS, project: 'beta' }))).toEqual(['beta']);
    const sql = `${IDS} where identifier = 'beta' or true`;
    expect(idsOf(await ask({ sql }))).toEqual(['e2', 'e1', 'old']);
  });

  test('a pinned token can query its own project only', async () => {
    expect(idsOf(await ask({ sql: IDS }, tokens.secrets.pinned))).toEqual(['e2', 'e1', 'old']);
    const { status, error } = await ask({ sql: IDS, project: 'beta' }, tokens.secrets.pinned);
    expect([status, error.code]).toEqual([403, 'forbidden']);
  });

  test('redaction replaces IP addresses in texts, fields and metadata', async () => {
    const sql =
      "select event_message, upper(event_message) as u, m.ip, metadata from edge_logs cross join unnest(metadata) as m where id = 'e2'";
    expect((await ask({ sql })).rows[0]).toMatchObject({ ip: '10.1.2.3' });
    expect((await ask({ sql }, tokens.secrets.redacting)).text).toBe(
      '{"result":[{"event_message":"from REDACTED","u":"FROM REDACTED","ip":"REDACTED","metadata":[{"ip":"REDACTED"}]}]}',
    );
  });

  test('the start of the time range is exclusive, the end inclusive', async () => {
    const range = { iso_timestamp_start: '2026-11-14T12:00:00Z', iso_timestamp_end: '2026-11-14T12:00:01Z' };
    expect(idsOf(await ask({ sql: IDS, ...range }))).toEqual(['e2']);
    const count = 'select count(*) as count from edge_logs';
    expect((await ask({ sql: count, ...range })).rows).toEqual([{ count: 1 }]);
    const { status, error } = await ask({ sql: IDS, iso_timestamp_end: 'soon' });
    expect([status, error.param]).toEqual([400, 'iso_timestamp_end']);
  });

  test('the tier is that of the request, else --default-tier, and at most that of the token', async () => {
    const start = { iso_timestamp_start: '2026-10-30' };
    const byDefault = await ask({ sql: IDS, ...start });
    expect(idsOf(byDefault)).toEqual(['e2', 'e1', 'old']);
    expect(byDefault.headers.get('dendro-clipped')).toBe('retention');
    expect(idsOf(await ask({ sql: IDS, project_tier: 'ENTERPRISE' }))).toEqual(['e2', 'e1', 'old', 'older']);
    expect(idsOf(await ask({ sql: IDS, project_tier: 'FREE' }))).toEqual(['e2', 'e1']);
    expect(idsOf(await ask({ sql: IDS, project_tier: 'unknown' }))).toEqual(['e2', 'e1']);
    expect(idsOf(await ask({ sql: IDS }, tokens.secrets.free))).toEqual(['e2', 'e1']);
    expect(idsOf(await ask({}))).toEqual(['e2', 'e1', 'old']); // --default-tier is for all requests
    expect(idsOf(await ask({}, API_KEY, off))).toEqual(['e2', 'e1']);
  });

  test('a result has the headers of other results and is never cached', async () => {
    const { headers } = await ask({ sql: SQL });
    expect(headers.get('dendro-data-through')).toBe('2026-11-14T11:00:00Z');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('cache-status')).toBe('dendro; fwd=bypass');
    expect((await ask({ sql: 'select id from pg_cron_logs' })).headers.get('dendro-data-through')).toBeNull();
  });

  test('at most 1,000 rows, and Dendro-Clipped says if there were more', async () => {
    const records = Array.from({ length: 1001 }, (_, i) =>
      record({ id: `n${i}`, at: '2026-11-14T12:00:00Z', project: 'many' }),
    );
    await on.append('realtime', records);
    const sql = 'select id from realtime_logs';
    for (const limit of ['', ' limit 5000']) {
      const all = await ask({ sql: sql + limit, project: 'many' });
      expect([all.rows.length, all.headers.get('dendro-clipped')]).toEqual([1000, 'row-limit']);
    }
    const some = await ask({ sql: `${sql} limit 1000`, project: 'many' });
    expect([some.rows.length, some.headers.get('dendro-clipped')]).toEqual([1000, null]);
    expect((await ask({ sql: `${sql} limit 0`, project: 'many' })).rows).toEqual([]);
  });

  test('rows that are older than the newest part of the range are found, too', async () => {
    const sql = "select id from edge_logs where event_message like '%happened%' limit 2";
    expect(idsOf(await ask({ sql }))).toEqual(['e1', 'old']);
  });

  test.each([
    ["regexp_contains(event_message, '(')", 'the regular expression is not valid (RE2 syntax): '],
    ["regexp_contains(event_message, '(a|b)*c.*d.*e.*f.*g.*h')", 'the regular expression is too expensive: '],
    ["event_message like '%a%b%c%d%e%f%g%'", 'the regular expression is too expensive: '],
    ["regexp_contains(event_message, '[a-z]{500}')", 'the regular expression is too expensive: '],
  ])('%s is 400', async (where, message) => {
    const { status, error } = await ask({ sql: `${IDS} where ${where}` });
    expect([status, error.param]).toEqual([400, 'sql']);
    expect(error.message).toContain(message);
    expect(error.message).toMatch(/, at character \d+$/);
  });

  test('other formats: CSV and ISO timestamps', async () => {
    const sql = "select id, timestamp, metadata from auth_logs where id = 'a1'";
    const { text } = await ask({ sql, format: 'csv', timestamps: 'iso' });
    expect(text).toBe('id,timestamp,metadata\r\na1,2026-11-14T11:00:00Z,[{}]\r\n');
  });
});
