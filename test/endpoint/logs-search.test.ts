import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { bindParameters } from '../../src/endpoint/parameters.ts';
import { createQueryKey } from '../../src/endpoint/query-key.ts';
import { accept } from '../logs/validate-record.ts';
import { micros, queryPages } from '../support/app.ts';
import { isOnClickHouse } from '../support/clickhouse.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('logs.search', () => {
  const app = useApp({
    endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined },
  });

  const search = async (parameters: Record<string, string>) => {
    const response = await app.query('logs.search', parameters);
    expect([response.status, response.error?.message]).toEqual([200, undefined]);
    return response;
  };
  const idsOf = async (parameters: Record<string, string>) =>
    (await search(parameters)).rows.map(row => row['id']);

  test('returns the columns of logs.all and the kind, newest first', async () => {
    await app.append('auth', [
      record({ id: 'old', at: '2026-11-14T10:00:00Z', project: 'shape', message: 'first' }),
      record({
        id: 'new',
        at: '2026-11-14T11:00:00.123456Z',
        project: 'shape',
        message: 'second',
        metadata: { a: [1] },
      }),
    ]);
    const { text, headers } = await search({ project: 'shape', kind: 'auth' });
    expect(text).toBe(
      `{"result":[{"id":"new","timestamp":${micros('2026-11-14T11:00:00.123456Z')},"event_message":"second","metadata":{"a":[1]},"kind":"auth"},` +
        `{"id":"old","timestamp":${micros('2026-11-14T10:00:00Z')},"event_message":"first","metadata":{},"kind":"auth"}]}`,
    );
    expect(headers.get('dendro-next-cursor')).toBeNull();
    expect(headers.get('dendro-data-through')).toBe('2026-11-14T11:00:00.123456Z');
  });

  test('an absent kind is edge; each kind has its own records', async () => {
    for (const kind of LOG_KINDS) {
      const at = { id: `of-${kind}`, at: '2026-11-14T12:34:00Z', project: 'kinds' };
      const create = { edge: edgeRecord, function_edge: functionEdgeRecord }[kind as string] ?? record;
      await app.append(kind, [create(at)]);
    }
    expect(await idsOf({ project: 'kinds' })).toEqual(['of-edge']);
    expect(await idsOf({ project: 'kinds', kind: '' })).toEqual(['of-edge']);
    for (const kind of LOG_KINDS) {
      const { rows } = await search({ project: 'kinds', kind });
      expect(rows).toMatchObject([{ id: `of-${kind}`, kind }]);
    }
  });

  // With its defaults, ClickHouse up to 26.5.2 does not sort the rows of so many tables (reader.ts).
  test('all kinds together are in the order of time', async () => {
    const expected: string[] = [];
    for (let round = 0; round < 3; round++)
      for (const [index, kind] of LOG_KINDS.entries()) {
        const id = `${kind}-${round}`;
        const at = micros('2026-11-14T12:00:00Z') - BigInt(round * LOG_KINDS.length + index) * 1_000_000n;
        const create = { edge: edgeRecord, function_edge: functionEdgeRecord }[kind as string] ?? record;
        await app.append(kind, [create({ id, at, project: 'order' })]);
        expected.push(id);
      }
    expect(await idsOf({ project: 'order', kind: 'all' })).toEqual(expected);
  });

  test.each([
    [{ kind: 'edges' }, 'kind', 'kind must be one of edge, postgres, function_edge'],
    [{ query: 'timeout "open' }, 'query', 'the quote is not closed at character 9'],
    [{ query: 'x sttus:500' }, 'query', 'there is no field sttus at character 3'],
    [
      { kind: 'realtime', query: 'status:500' },
      'query',
      'the selected log kind has no field status at character 1',
    ],
    [{ query: 'a'.repeat(1025) }, 'query', 'query is too long'],
    [{ cursor: 'abc' }, 'cursor', 'cursor is not a cursor of this query'],
    [{ cursor: 'a'.repeat(2000) }, 'cursor', 'cursor is too long'],
  ])('%j is 400 and names the parameter', async (parameters, param, message) => {
    const { status, error } = await app.query('logs.search', { project: 'p', ...parameters } as Record<
      string,
      string
    >);
    expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', param]);
    expect(error.message).toContain(message);
  });

  test('the longest allowed word is searched in a record of 1 MiB at once; a longer one is 400', async () => {
    const message = 'é'.repeat(500_000); // a word of 1,000 such characters took 20 s
    await app.append('auth', [record({ at: '2026-11-14T12:00:00Z', project: 'large', message })]);
    const find = (query: string) => app.query('logs.search', { project: 'large', kind: 'auth', query });
    expect(await find(`${'é'.repeat(127)}z`)).toMatchObject({ status: 200, rows: [] });
    const excluded = Array.from({ length: 7 }, (_, i) => `-${'é'.repeat(120)}${i}`).join(' ');
    expect((await find(excluded)).rows).toHaveLength(1);
    const { status, error } = await find(`${'é'.repeat(128)}z`);
    expect([status, error.param]).toEqual([400, 'query']);
  });

  // search-property.test.ts has the expressions and the fields of other kinds.
  test('finds levels of postgres, in an object or as a flat attribute of OpenTelemetry', async () => {
    const level = (id: string, metadata: Record<string, unknown>) =>
      record({ id, at: '2026-11-14T12:30:00Z', project: 'levels', metadata });
    await app.append('postgres', [
      level('p1', { parsed: { error_severity: 'ERROR' } }),
      level('p2', { parsed: { error_severity: 'LOG' } }),
      level('p3', { 'parsed.error_severity': 'FATAL' }),
    ]);
    const find = (query: string) => idsOf({ project: 'levels', kind: 'postgres', query });
    expect([await find('level:error'), await find('level:fatal')]).toEqual([['p1'], ['p3']]);
  });

  test('finds the value at a path however its JSON is written', async () => {
    const values = [
      '"Kiosk é/1"',
      '"\\u004biosk \\u00E9\\/1"',
      '"\u212aio\u017fk é/1"',
      '"\\u212aiosk é/1"',
      '"kiosk"',
      '12.50',
      'true',
    ];
    const records = values.map((json, index) => ({
      ...record({ id: `v${index}`, at: '2026-11-14T09:00:00Z', project: 'written' }),
      metadata: `{"place":{"name":${json}}}`,
    }));
    await app.append('auth', records);
    const find = async (query: string) => (await idsOf({ project: 'written', kind: 'auth', query })).sort();
    expect(await find('place.name:"kiosk É/1"')).toEqual(['v0', 'v1', 'v2', 'v3']);
    expect(await find('place.name:*K*')).toEqual(['v0', 'v1', 'v2', 'v3', 'v4']);
    expect(await find('place.name:*/1 OR place.name:tru*')).toEqual(['v0', 'v1', 'v2', 'v3', 'v6']);
    expect(await find('place.name:12.5 OR place.name:kiosk')).toEqual(['v4', 'v5']);
    expect(await find('-place.name:kiosk*')).toEqual(['v5', 'v6']);
  });

  test('path: finds all gateway requests of self-hosted Supabase to a path, whatever their query string', async () => {
    // Kong and Envoy log the same line, whose path has the query string; the hosted platform has it in a field of its own.
    const paths: Record<string, object> = {
      plain: { path: '/rest/v1/todos' },
      query: { path: '/rest/v1/todos?select=*&done=eq.false' },
      empty: { path: '/rest/v1/todos?' },
      hosted: {
        path: '/rest/v1/todos',
        search: '?select=*',
        url: 'https://a.example/rest/v1/todos?select=*',
      },
      url: { url: 'https://a.example/rest/v1/todos?select=a/b' },
      below: { path: '/rest/v1/todos/1?select=*' },
      longer: { path: '/rest/v1/todos2?select=*' },
      other: { path: '/rest/v1/users?from=/rest/v1/todos' },
    };
    const at = '2026-11-14T09:00:00Z';
    await app.append(
      'edge',
      Object.entries(paths).map(([id, request]) =>
        accept({ id, timestamp: at, project: 'gateway', metadata: { request } }, 'edge'),
      ),
    );
    const find = async (query: string, kind: string) =>
      (await idsOf({ project: 'gateway', kind, query })).sort();
    for (const kind of ['edge', 'all']) {
      const all = ['empty', 'hosted', 'plain', 'query', 'url'];
      expect(await find('path:/rest/v1/todos', kind)).toEqual(all);
      expect(await find('path:/rest/v1/todos*', kind)).toEqual([...all, 'below', 'longer'].sort());
      expect(await find('-path:/rest/v1/todos', kind)).toEqual(['below', 'longer', 'other']);
    }
  });

  describe('pages', () => {
    const walk = async (parameters: Record<string, string>) =>
      (await queryPages(app, 'logs.search', parameters)).map(({ rows }) =>
        rows.map(row => String(row['id'])),
      );

    test('neither lose nor repeat a record if thousands share one microsecond', async () => {
      const at = '2026-11-14T12:00:00.000001Z';
      const count = isOnClickHouse() ? 334 : 3_034; // the ClickHouse of the tests is slow
      const ids = Array.from({ length: count }, (_, i) => `id-${String(i * 7919).padStart(8, '0')}`);
      await app.append(
        'edge',
        ids.map(id => edgeRecord({ id, at, project: 'ties', message: 'tie' })),
      );
      const pages = await walk({ project: 'ties', query: 'tie' });
      expect(pages.map(page => page.length)).toEqual([...Array((count - 34) / 100).fill(100), 34]);
      expect(pages.flat()).toEqual([...ids].sort());
    }, 120_000);

    test('neither lose nor repeat a record if many share timestamp and id', async () => {
      const at = '2026-11-14T12:00:00.000001Z';
      const long = 'x'.repeat(400);
      const messages = Array.from({ length: 250 }, (_, i) => `message ${i}`);
      await app.append('edge', [
        ...messages.map(message => edgeRecord({ id: 'same', at, project: 'same', message })),
        ...messages.map((message, i) => edgeRecord({ id: `${long}${i % 10}`, at, project: 'same', message })),
      ]);
      const pages = await queryPages(app, 'logs.search', { project: 'same' });
      const seen = pages.flatMap(({ rows }) => rows.map(row => `${row['id']} ${row['event_message']}`));
      expect(seen.length).toBe(500);
      expect(new Set(seen).size).toBe(500);
    }, 120_000);

    test('have no cursor after the last record', async () => {
      const records = (count: number, project: string) =>
        Array.from({ length: count }, (_, i) =>
          edgeRecord({ id: `n${i}`, at: micros('2026-11-14T12:00:00Z') + BigInt(i), project }),
        );
      await app.append('edge', [...records(100, 'exactly'), ...records(101, 'one-more')]);
      expect((await walk({ project: 'exactly' })).flat().length).toBe(100);
      const pages = await walk({ project: 'one-more' });
      expect(pages.map(page => page.length)).toEqual([100, 1]);
      expect(new Set(pages.flat()).size).toBe(101);
    }, 60_000);

    test('a changed cursor, or one of another query, is 400 and names cursor', async () => {
      const at = '2026-11-14T12:00:00Z';
      await app.append(
        'edge',
        Array.from({ length: 101 }, () => edgeRecord({ at, project: 'forged' })),
      );
      const cursor = (await search({ project: 'forged' })).headers.get('dendro-next-cursor') ?? '';
      expect(cursor).toMatch(/^[\w-]{20,}$/);
      const changed = `${cursor.slice(0, -6)}${cursor.at(-6) === 'A' ? 'B' : 'A'}${cursor.slice(-5)}`;
      const wrong = [
        { project: 'forged', cursor: changed },
        { project: 'forged', cursor: `${cursor} ` },
        { project: 'forged', cursor: cursor.slice(0, -4) },
        { project: 'forged', cursor, query: 'x' },
        { project: 'other', cursor },
        { project: 'forged', cursor, kind: 'auth' },
        { project: 'forged', cursor, project_tier: 'PRO' },
      ];
      for (const parameters of wrong) {
        const { status, error } = await app.query('logs.search', parameters as Record<string, string>);
        expect([status, error.param]).toEqual([400, 'cursor']);
      }
    });

    test('a forged cursor with a valid checksum is 400, unless all its values are possible', async () => {
      const catalog = loadCatalog({ builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined }, 'duckdb');
      const definition = catalog.find('logs.search')?.definition;
      if (definition === undefined) throw new Error('there is no logs.search');
      const query = createQueryKey(
        definition,
        bindParameters(definition, new URLSearchParams({ project: 'x' })),
      );
      const statusOf = async (position: string) => {
        const hash = createHash('sha256').update(`${query}\0${position}`).digest('base64url');
        const cursor = Buffer.from(hash.slice(0, 11) + position).toString('base64url');
        const { status, error } = await app.query('logs.search', { project: 'x', cursor });
        return [status, error?.code, error?.param];
      };
      const at = `${micros('2026-11-14T12:00:00Z')}`;
      const forged = (...values: unknown[]) => Object.assign([at, 'a', 1, 3600] as unknown[], values);
      const impossible = [
        ...['x', '', '5', 'null', '{}', '[]', '["1"', '"abc"', `["${at}","a",1e300,1]`],
        ...['abc', '', '1.5', '0x10', '9'.repeat(19), 5, null, [at]].map(value => forged(value)),
        ...[5, null, [], 'x'.repeat(257), 'é'.repeat(129)].map(value => forged(at, value)),
        ...[-5, 1.5, 2 ** 32, '1', null, true].map(value => forged(at, 'a', value)),
        ...[-1, 0.5, 2 ** 32, '1', null].map(value => forged(at, 'a', 0, value)),
      ].map(value => (typeof value === 'string' ? value : JSON.stringify(value)));
      for (const position of impossible)
        expect([position, ...(await statusOf(position))]).toEqual([
          position,
          ...[400, 'invalid_parameter', 'cursor'],
        ]);
      const possible = [
        forged(),
        ...['9'.repeat(18), `-${'9'.repeat(18)}`].map(value => forged(value)),
        forged(at, '\0'),
        forged(at, 'x'.repeat(256), 2 ** 32 - 1, 2 ** 32 - 1),
        forged(at, '', 0, 0),
      ].map(value => JSON.stringify(value));
      for (const position of possible)
        expect([position, ...(await statusOf(position))]).toEqual([position, 200, undefined, undefined]);
    });

    test('stay in the time range and in the retention of the tier', async () => {
      const ids = (parameters: Record<string, string>) => idsOf({ project: 'when', ...parameters });
      await app.append('edge', [
        edgeRecord({ id: 'future', at: '2026-11-14T13:00:00Z', project: 'when' }),
        edgeRecord({ id: 't2', at: '2026-11-14T09:00:00.000002Z', project: 'when' }),
        edgeRecord({ id: 't1', at: '2026-11-14T09:00:00.000001Z', project: 'when' }),
        edgeRecord({ id: '1d-at', at: '2026-11-13T12:34:56.789012Z', project: 'when' }),
        edgeRecord({ id: '90d-in', at: '2026-08-16T12:34:56.789013Z', project: 'when' }),
        edgeRecord({ id: '90d-at', at: '2026-08-16T12:34:56.789012Z', project: 'when' }),
      ]);
      expect(await ids({})).toEqual(['future', 't2', 't1']);
      expect(await ids({ project_tier: 'PRO' })).toEqual(['future', 't2', 't1', '1d-at']);
      expect(await ids({ project_tier: 'PAYG' })).toEqual(['future', 't2', 't1', '1d-at', '90d-in']);
      const [start, end] = ['2026-11-14T09:00:00.000001Z', '2026-11-14T09:00:00.000002Z'];
      expect(await ids({ iso_timestamp_start: start, iso_timestamp_end: end })).toEqual(['t2']);
      expect(await ids({ iso_timestamp_end: start })).toEqual(['t1']);
      expect(await ids({ iso_timestamp_start: end, iso_timestamp_end: start })).toEqual([]);
      const { headers } = await search({ project: 'when', iso_timestamp_start: '2020-01-01' });
      expect(headers.get('dendro-clipped')).toBe('retention');
    });
  });
});
