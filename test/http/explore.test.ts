import { beforeAll, describe, expect, test, vi } from 'vitest';
import { API_KEY, micros } from '../support/app.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp, useTokens } from '../support/use-app.ts';

// Two projects, alpha and beta. The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('the explore pack', () => {
  const tokens = useTokens({
    alpha: { projects: ['alpha'] },
    redacted: { redact_pii: true },
    narrow: { scopes: ['query:logs.all'] },
    free: { tier: 'FREE' },
  });
  const app = useApp({
    tokensFile: tokens.file,
    responseBytes: 100_000,
    endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined },
  });
  beforeAll(async () => {
    const metadata = { client: '192.0.2.7', request: { host: '192.0.2.8' }, '192.0.2.9': 'x' };
    await app.append('edge', [
      edgeRecord({
        id: 'a',
        at: '2026-11-14T12:20:00Z',
        project: 'alpha',
        message: 'from 192.0.2.1',
        metadata,
      }),
      edgeRecord({ id: 'a-old', at: '2026-11-10T12:20:00Z', project: 'alpha' }),
      ...['1', '2'].map(id =>
        edgeRecord({ id: `THEIRS-${id}`, at: '2026-11-14T12:30:00Z', project: 'beta' }),
      ),
    ]);
  });

  const send = (who: keyof typeof tokens.secrets | 'key', name: string, query: string) =>
    app.get(`/api/endpoints/query/${name}?${query}`, {
      headers: { 'X-API-KEY': who === 'key' ? API_KEY : tokens.secrets[who] },
    });

  const ID = 'id=THEIRS-1&timestamp=2026-11-14T12:30:00Z';
  test.each([
    ['logs.search', ''],
    ['logs.search', 'query=x'],
    ['logs.histogram', ''],
    ['logs.fields', 'field=path'],
    ['logs.top', 'field=path'],
    ['logs.patterns', ''],
    ['logs.compare', 'query=x'],
    ['logs.record', ID],
  ])('a pinned token gets 403 from %s?%s for another project', async (name, query) => {
    for (const project of ['beta', 'ALPHA', 'alpha%', '*']) {
      const { status, error } = await send('alpha', name, `project=${encodeURIComponent(project)}&${query}`);
      expect([status, error.code, error.param]).toEqual([403, 'forbidden', 'project']);
    }
  });

  test('a pinned token gets nothing of another project from any endpoint', async () => {
    const calls = [
      ['logs.search', 'project=alpha'],
      ['logs.search', 'project=alpha&query=THEIRS'],
      ['logs.histogram', 'project=alpha&project_tier=PRO'],
      ['logs.fields', 'project=alpha&field=path'],
      ['logs.top', 'project=alpha&field=id&kind=all'],
      ['logs.patterns', 'project=alpha'],
      ['logs.compare', 'project=alpha&query=-x'],
      ['logs.record', `project=alpha&${ID}`],
      ['projects.active', ''],
      ['projects.active', 'prefix=beta'],
    ] as const;
    const { headers } = await send('alpha', 'logs.search', 'project=alpha');
    expect(headers.get('dendro-data-through')).toBe('2026-11-14T12:20:00Z');
    expect((await send('narrow', 'logs.search', 'project=alpha')).status).toBe(403);
    const counts: (readonly [string, unknown])[] = [];
    for (const [name, query] of calls) {
      const { status, text, rows } = await send('alpha', name, query);
      expect([status, text.includes('THEIRS'), text.includes('beta')]).toEqual([200, false, false]);
      counts.push([name, rows.reduce((sum, row) => sum + Number(row['count'] ?? 1), 0)]);
    }
    expect(counts).toEqual([
      ['logs.search', 1],
      ['logs.search', 0],
      ['logs.histogram', 2],
      ['logs.fields', 1],
      ['logs.top', 1],
      ['logs.patterns', 1],
      ['logs.compare', 0],
      ['logs.record', 0],
      ['projects.active', 2],
      ['projects.active', 0],
    ]);
  });

  test('a token with a maximum tier gets the retention of that tier', async () => {
    const query = 'project=alpha&project_tier=ENTERPRISE';
    expect((await send('key', 'logs.search', query)).rows.length).toBe(2);
    expect((await send('free', 'logs.search', query)).rows.length).toBe(1);
  });

  test('redaction replaces the addresses in message and metadata', async () => {
    const { text } = await send('redacted', 'logs.search', 'project=alpha');
    expect(text).not.toContain('192.0.2');
    expect(text).toContain('from REDACTED');
    const fields = await send('redacted', 'logs.fields', 'project=alpha&field=host');
    expect(fields.rows).toEqual([{ value: 'REDACTED', count: 1 }]);
    const metadata = { client: '192.0.2.7', '192.0.2.9': 'x', labels: { 'ip/192.0.2.9': 'x' } };
    await app.append(
      'edge',
      ['one', 'one', 'two', 'two'].map((message, i) =>
        edgeRecord({
          ...{ id: `${i}`, at: '2026-11-14T12:20:00Z', project: 'addresses' },
          ...{ message: `${message} 192.0.2.1 is up`, metadata: message === 'one' ? metadata : {} },
        }),
      ),
    );
    for (const [name, query] of [
      ['logs.top', 'field=metadata.client&second_field=event_message'],
      ['logs.patterns', ''],
      ['logs.compare', 'query=one'],
    ] as const) {
      const { status, text, rows } = await send('redacted', name, `project=addresses&${query}`);
      expect([name, status, rows.length > 0, text.includes('192.0.2')]).toEqual([name, 200, true, false]);
      expect(text).toContain('REDACTED');
    }
  });

  test('the cursors of a token with redaction contain no id, and its pages have every record once', async () => {
    const messages = Array.from({ length: 320 }, (_, i) => `m${String(i).padStart(3, '0')}`);
    const at = (i: number) => micros('2026-11-14T12:00:00Z') - BigInt(i < 20 ? i : 20);
    await app.append(
      'edge',
      messages.map((message, i) =>
        edgeRecord({ id: `10.0.0.1-${message}`, project: 'ids', at: at(i), message }),
      ),
    );
    const seen: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { rows, headers } = await send('redacted', 'logs.search', `project=ids&cursor=${cursor}`);
      seen.push(...rows.map(row => row['event_message']));
      cursor = headers.get('dendro-next-cursor');
      expect(Buffer.from(cursor ?? '', 'base64url').toString()).not.toMatch(/10\.0\.0\.1|m\d\d\d/);
    }
    expect(seen).toEqual(messages);
    // A client can forge a cursor with an id, which has no secret. With redaction it could so find out a hidden id.
    const { headers } = await send('key', 'logs.search', 'project=ids');
    const withId = `project=ids&cursor=${headers.get('dendro-next-cursor')}`;
    expect((await send('key', 'logs.search', withId)).status).toBe(200);
    const { status, error } = await send('redacted', 'logs.search', withId);
    expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', 'cursor']);
  });

  test('the pages of logs.search have every record once if the byte limit cuts them', async () => {
    const message = '\u0001'.repeat(10_000); // six times as long in JSON
    const ids = Array.from({ length: 10 }, (_, i) => `${i}`);
    await app.append(
      'edge',
      ids.map(id => edgeRecord({ id, project: 'bytes', at: '2026-11-14T12:00:00Z', message })),
    );
    for (const format of ['json', 'csv']) {
      const seen: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { text, headers } = await app.query('logs.search', { project: 'bytes', format, cursor });
        seen.push(...[...text.matchAll(/(?:"id":"|\n|^)(\d)[",]/g)].map(([, id = '']) => id));
        cursor = headers.get('dendro-next-cursor');
        if (cursor !== null) expect(headers.get('dendro-clipped')).toBe('byte-limit');
      }
      expect(seen).toEqual(ids);
    }
  });

  test('a page that the byte limit cuts does not enlarge the slices of the next pages', async () => {
    const at = micros('2026-11-14T12:00:00Z');
    const message = 'x'.repeat(20_000);
    await app.append(
      'edge',
      Array.from({ length: 25 }, (_, i) =>
        edgeRecord({ id: `${i}`, project: 'large', at: at - BigInt(i) * 60_000_000n, message }),
      ),
    );
    const query = vi.spyOn(app.store, 'query');
    const firstSlices: number[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      query.mockClear();
      const { headers } = await app.query('logs.search', { project: 'large', cursor });
      const { slice_start, slice_end } = query.mock.calls[0]?.[1] ?? {};
      if (cursor !== '') firstSlices.push(Number(slice_end?.value) - Number(slice_start?.value));
      cursor = headers.get('dendro-next-cursor');
    }
    query.mockRestore();
    expect(firstSlices.length).toBeGreaterThan(3);
    expect(new Set(firstSlices)).toEqual(new Set([3_600_000_000]));
  });

  test('an unknown tier behaves as FREE and is in Dendro-Ignored, except in the built-in endpoints', async () => {
    const ignoredBy = async (name: string, parameters: Record<string, string>) =>
      (await app.query(name, { project: 'a', ...parameters })).headers.get('dendro-ignored');
    expect(await ignoredBy('logs.search', { project_tier: 'free' })).toBe('project_tier');
    expect(await ignoredBy('logs.search', { project_tier: 'FREE' })).toBeNull();
    expect(await ignoredBy('logs.all', { project_tier: 'free' })).toBeNull();
    expect(await ignoredBy('functions.invocation-stats', { interval: '1h' })).toBeNull();
  });

  test('is in the catalog and in OpenAPI, with the fields of each kind', async () => {
    const { rows } = await app.get('/api/endpoints');
    const endpoint = rows.find(row => row['name'] === 'logs.search') as { parameters: { name: string }[] };
    const parameter = (name: string) => endpoint.parameters.find(known => known.name === name);
    expect(parameter('kind')).toMatchObject({ type: 'choice', default: 'edge', fallback: null });
    expect(parameter('query')).toMatchObject({
      type: 'search',
      fields: { edge: ['status', 'method', 'path', 'host'], realtime: ['level'] },
    });
    expect(parameter('cursor')).toMatchObject({ type: 'cursor', required: false });
    const document = JSON.parse((await app.get('/openapi.json')).text);
    const operation = document.paths['/api/endpoints/query/logs.search'].get;
    expect(operation.responses[200].headers).toHaveProperty('Dendro-Next-Cursor');
  });
});
