import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { BUILT_IN, testEndpoint } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord } from '../support/record.ts';
import { getUndecoded } from '../support/undecoded.ts';
import { useApp, useEndpoints, useTokens } from '../support/use-app.ts';

/** Cached and with text columns; no built-in endpoint is both. */
const CACHED_MESSAGES = testEndpoint('own.messages', {
  parameters: { project: {} },
  columns: { at: 'utc_datetime', event_message: 'text', metadata: 'json' },
  isCached: true,
  more: { applies_pin: true },
  sql: 'select timestamp as at, event_message, metadata from edge_logs where project = $project order by timestamp',
});

const ADDRESS = /203\.0\.113\.\d|2001:db8::\d/i;
const CODINGS = ['identity', 'gzip', 'br'];
const FORMATS = ['json', 'ndjson', 'csv'];

describe('a token with PII redaction', () => {
  const own = useEndpoints({ 'own.messages': CACHED_MESSAGES });
  const tokens = useTokens({
    redacted: { redact_pii: true },
    plain: { redact_pii: false },
    pinnedRedacted: { redact_pii: true, projects: ['redacted-first', 'plain-first'] },
    pinnedPlain: { projects: ['redacted-first', 'plain-first'] },
  });
  const app = useApp(
    {
      tokensFile: tokens.file,
      cacheBytes: 64 * 1024 * 1024,
      endpointFolders: { builtIn: BUILT_IN, custom: own.folder },
    },
    new ManualTimer(),
  );
  beforeAll(async () => {
    const projects = [
      'redacted-first',
      'plain-first',
      ...FORMATS.flatMap(f => CODINGS.map(c => `${f} ${c}`)),
    ];
    // Enough records for a body that is large enough to be compressed.
    await app.append(
      'edge',
      projects.flatMap(project =>
        Array.from({ length: 9 }, (_, i) =>
          edgeRecord({
            at: `2026-11-14T12:00:0${i}Z`,
            project,
            message: `203.0.113.${i} - GET /rest from [2001:db8::${i}]:443`,
            metadata: { request: { headers: { 'x-real-ip': `203.0.113.${i}` } }, note: 'kept', n: 203.0113 },
          }),
        ),
      ),
    );
  });

  type Who = keyof typeof tokens.secrets;
  const send = (who: Who, name: string, project: string, headers: Record<string, string> = {}) =>
    app.get(`/api/endpoints/query/${name}?${new URLSearchParams({ project })}`, {
      headers: { 'X-API-KEY': tokens.secrets[who], ...headers },
    });

  test('gets REDACTED in place of IP addresses and everything else unchanged', async () => {
    const { rows } = await send('redacted', 'logs.all', 'plain-first');
    expect(rows).toHaveLength(9);
    expect(rows[0]).toMatchObject({
      event_message: 'REDACTED - GET /rest from [REDACTED]:443',
      metadata: { request: { headers: { 'x-real-ip': 'REDACTED' } }, note: 'kept', n: 203.0113 },
    });
  });

  test.each([
    ['redacted-first', ['redacted', 'plain', 'redacted', 'plain'] as const],
    ['plain-first', ['plain', 'redacted', 'plain', 'redacted'] as const],
    ['redacted-first', ['pinnedRedacted', 'pinnedPlain', 'pinnedRedacted', 'pinnedPlain'] as const],
    ['plain-first', ['pinnedPlain', 'pinnedRedacted', 'pinnedPlain', 'pinnedRedacted'] as const],
  ])('shares cached rows with other tokens, but never a response: %s, %j', async (project, callers) => {
    const etags: string[] = [];
    for (const [nth, who] of callers.entries()) {
      const { text, rows, headers } = await send(who, 'own.messages', project);
      expect(rows).toHaveLength(9);
      if (who.toLowerCase().includes('redacted')) expect(text).not.toMatch(ADDRESS);
      else expect(text).not.toContain('REDACTED');
      if (nth > 0) expect(headers.get('cache-status')).toMatch(/^dendro; hit/); // one load serves all four
      etags.push(headers.get('etag') ?? '');
    }
    expect(etags[0]).not.toBe(etags[1]);
    expect(etags.slice(2)).toEqual(etags.slice(0, 2));
    for (const [index, status] of [304, 200].entries()) {
      const headers = { 'If-None-Match': etags[index] ?? '' };
      expect((await send(callers[0], 'own.messages', project, headers)).status).toBe(status);
    }
  });

  test.each(FORMATS.flatMap(format => CODINGS.map(coding => [format, coding] as const)))(
    'redacted and plain bodies never mix as %s, compressed with %s',
    async (format, coding) => {
      const parameters = new URLSearchParams({ project: `${format} ${coding}`, format });
      const textFor = async (who: Who) => {
        const { headers, body } = await getUndecoded(
          `${app.url}/api/endpoints/query/own.messages?${parameters}`,
          {
            'X-API-KEY': tokens.secrets[who],
            'Accept-Encoding': coding,
          },
        );
        expect(headers['content-encoding'] ?? 'identity').toBe(coding);
        if (coding === 'gzip') return gunzipSync(body).toString();
        return (coding === 'br' ? brotliDecompressSync(body) : body).toString();
      };
      for (let round = 0; round < 2; round++) {
        expect(await textFor('redacted')).not.toMatch(ADDRESS);
        expect(await textFor('plain')).toMatch(ADDRESS);
        expect(await textFor('plain')).not.toContain('REDACTED');
      }
    },
  );

  test('stays redacted when the entry is refreshed by the warmer or by no-cache', async () => {
    for (let i = 0; i < 3; i++) {
      await app.pass(301_000);
      for (const headers of [{}, { 'Cache-Control': 'no-cache' }]) {
        expect((await send('redacted', 'own.messages', 'plain-first', headers)).text).not.toMatch(ADDRESS);
        expect((await send('plain', 'own.messages', 'plain-first', headers)).text).toMatch(ADDRESS);
      }
    }
  });
});
