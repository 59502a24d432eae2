import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { SHIPPED_ENDPOINTS } from '../../src/config.ts';
import { API_KEY, micros, NOW } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import {
  attribute,
  encodeOtlp,
  type OtlpObject,
  type OtlpOptions,
  otlpRequest,
  sendOtlp,
  text,
} from '../support/otlp.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const tokens = useTokens({
  edge: { scopes: ['ingest:edge'] },
  reader: { scopes: ['query'] },
  pinned: { scopes: ['ingest'], projects: ['mine'] },
  service: { scopes: ['ingest:function'], projects: ['shop'] },
  twoProjects: { scopes: ['ingest:function'], projects: ['shop', 'mine'] },
});
const app = useApp({ tokensFile: tokens.file, endpointFolders: SHIPPED_ENDPOINTS });

const send = (request: OtlpObject | string | Uint8Array, options?: OtlpOptions) =>
  sendOtlp(app.internalUrl, request, options);
const nanos = (microseconds = 0) => String((micros(NOW) + BigInt(microseconds)) * 1000n);
const record = (message: string, fields: OtlpObject = {}) => ({
  timeUnixNano: nanos(),
  body: text(message),
  ...fields,
});
const countOf = async (project: string, kind = 'edge') => (await idsOf(app, project, kind)).length;
const rowsOf = async (project: string) =>
  (await app.query('logs.all', { project, project_tier: 'ENTERPRISE' })).rows;

const ENCODINGS = [
  ['protobuf', (request: OtlpObject) => request, 'application/x-protobuf'],
  ['JSON', (request: OtlpObject) => JSON.stringify(request), 'application/json'],
] as const;

describe.each(ENCODINGS)('POST /v1/logs as %s', (encoding, encode, mediaType) => {
  test('stores body, attributes, resource, scope, severity, time, trace and span id', async () => {
    const project = `fields-${encoding}`;
    const request = {
      resourceLogs: [
        {
          resource: {
            attributes: [
              attribute('service.name', text('edge_logs')),
              attribute('service.namespace', text(project)),
            ],
          },
          scopeLogs: [
            {
              scope: { name: 'checkout', version: '1.2' },
              logRecords: [
                {
                  timeUnixNano: nanos(-5),
                  observedTimeUnixNano: nanos(7),
                  severityNumber: 17,
                  severityText: 'Error',
                  eventName: 'payment.failed',
                  traceId: '5b8efff798038103d269b633813fc60c',
                  spanId: 'eee19b7ec3c1b174',
                  body: text('payment failed'),
                  attributes: [
                    attribute('retry', { boolValue: true }),
                    attribute('big', { intValue: '9223372036854775807' }),
                    attribute('negative', { intValue: '-5' }),
                    attribute('ratio', { doubleValue: 0.25 }),
                    attribute('not.a.number', { doubleValue: 'NaN' }),
                    attribute('raw', { bytesValue: 'AQI=' }),
                    attribute('empty', {}),
                    attribute('__proto__', text('data')),
                    attribute('list', { arrayValue: { values: [text('a'), { intValue: 1 }] } }),
                    attribute('request', {
                      kvlistValue: { values: [attribute('url', text('https://x.test/rest/v1/a?b'))] },
                    }),
                  ],
                },
              ],
            },
          ],
        },
      ],
    };
    const { status, headers, body, message } = await send(encode(request));
    expect([status, headers.get('content-type'), message]).toEqual([200, mediaType, {}]);
    expect(body.toString()).toBe(encoding === 'JSON' ? '{}' : '');
    await expect.poll(() => rowsOf(project)).toHaveLength(1);
    const [row] = await rowsOf(project);
    expect(row).toMatchObject({
      event_message: 'payment failed',
      timestamp: Number(micros(NOW)) - 5,
      metadata: {
        retry: true,
        negative: -5,
        ratio: 0.25,
        'not.a.number': 'NaN',
        raw: 'AQI=',
        empty: null,
        list: ['a', 1],
        request: { url: 'https://x.test/rest/v1/a?b' },
        level: 'Error',
        severity_number: 17,
        event_name: 'payment.failed',
        trace_id: '5b8efff798038103d269b633813fc60c',
        span_id: 'eee19b7ec3c1b174',
        scope: { name: 'checkout', version: '1.2' },
        resource: { 'service.name': 'edge_logs', 'service.namespace': project },
      },
    });
    const { text: responseText } = await app.query('logs.all', { project });
    expect(responseText).toContain('"big":9223372036854775807,');
    expect(responseText).toContain('"__proto__":"data"');
  });

  test('records of an unknown source and without a project are rejected with a 200, and the others are stored', async () => {
    for (const empty of [{}, { resourceLogs: [] }, otlpRequest({ 'service.name': 'nobody' }, [])])
      expect(await send(encode(empty))).toMatchObject({ status: 200, message: {} });
    const errorMessage = expect.stringContaining('has no service.name');
    expect(await send(encode(otlpRequest({}, [record('a'), record('b')])))).toMatchObject({
      status: 200,
      message: { partialSuccess: { rejectedLogRecords: '2', errorMessage } },
    });
    const project = `partial-${encoding}`;
    const resources = [
      otlpRequest({ 'service.name': 'edge', 'service.namespace': project }, [record('a'), record('b')]),
      otlpRequest({ 'service.name': 'checkout', 'service.namespace': project }, [record('c')]),
      otlpRequest({ 'service.name': 'postgres' }, [record('d')]),
      otlpRequest({ 'service.name': 'auth', 'service.namespace': project }, [record('e')]),
    ];
    const request = { resourceLogs: resources.flatMap(({ resourceLogs }) => resourceLogs) };
    const { status, message } = await send(encode(request));
    expect(status).toBe(200);
    const { partialSuccess } = message as { partialSuccess: Record<string, string> };
    expect(partialSuccess['rejectedLogRecords']).toBe('2');
    expect(partialSuccess['errorMessage']).toMatch(
      /^2 of 5 records were rejected\. Record 2: The source "checkout" is unknown\. .*Record 3: The record has no project\./,
    );
    await expect.poll(async () => [await countOf(project), await countOf(project, 'auth')]).toEqual([2, 1]);
    const quarantine = () => readFileSync(join(app.dataDirectory, 'quarantine.ndjson'), 'utf8');
    await expect.poll(quarantine).toContain(`"source":"checkout","code":"unknown_source"`);
    expect(quarantine()).toContain(`"record":{"project":"${project}","event_message":"c"`);
  });

  test.each([
    ['no token', '', 401, 16],
    ['a wrong token', 'dnd_wrong', 401, 16],
    ['a token without ingest', 'reader', 403, 7],
  ])('%s gets a Status', async (_, name, status, code) => {
    const token = name === 'reader' ? tokens.secrets.reader : name;
    const response = await send(encode(otlpRequest({}, [])), { token });
    expect([response.status, response.headers.get('content-type')]).toEqual([status, mediaType]);
    expect(response.message).toEqual({ code, message: expect.stringContaining('token') });
  });

  test('a body that is not text becomes its JSON text', async () => {
    const project = `bodies-${encoding}`;
    const bodies = [
      { kvlistValue: { values: [attribute('a', { intValue: '12345678901234567' })] } },
      { intValue: 5 },
      { arrayValue: { values: [{ boolValue: false }, {}] } },
    ];
    const records = bodies.map((body, index) => ({ timeUnixNano: nanos(-index), body }));
    await send(encode(otlpRequest({ 'service.name': 'edge', 'service.namespace': project }, records)));
    const messages = async () => (await rowsOf(project)).map(row => row['event_message']);
    await expect.poll(messages).toEqual(['{"a":12345678901234567}', '5', '[false,null]']);
  });
});

describe.each(ENCODINGS)("a request of Supabase's OTLP drain as %s", (encoding, encode) => {
  const keyValues = (fields: Readonly<Record<string, OtlpObject>>) => ({
    kvlistValue: { values: Object.entries(fields).map(([key, value]) => attribute(key, value)) },
  });
  /** The message is the name of the event, and the body has the other fields. */
  const drainRecord = (id: string, fields: Readonly<Record<string, OtlpObject>> = {}) => ({
    timeUnixNano: nanos(-3),
    observedTimeUnixNano: nanos(),
    severityNumber: 17,
    eventName: `GET | 503 | ${id}`,
    body: keyValues({
      id: text(id),
      metadata: keyValues({
        level: text('error'),
        request: keyValues({ method: text('GET'), path: text('/rest/v1/todos') }),
        response: keyValues({ status_code: { intValue: 503 } }),
      }),
      ...fields,
    }),
  });
  /** Until August 2026, the drain names the source in the scope. */
  const earlier = (source: string, records: readonly OtlpObject[]) => ({
    resourceLogs: [
      {
        resource: {
          attributes: [
            attribute('name', text('Logflare')),
            attribute('service', keyValues({ name: text('Logflare'), version: text('1.30.0') })),
          ],
        },
        scopeLogs: [{ scope: { name: source }, logRecords: records }],
      },
    ],
  });
  /** Since then, it names the source and the project in the resource. */
  const later = (source: string, project: string, records: readonly OtlpObject[]) => {
    const { resourceLogs } = otlpRequest({ 'service.name': source, 'service.namespace': project }, records);
    const scope = { name: 'Logflare', version: '1.50.0' };
    return {
      resourceLogs: resourceLogs.map(logs => ({ ...logs, scopeLogs: [{ scope, logRecords: records }] })),
    };
  };
  const gzipped = (request: OtlpObject, options: OtlpOptions = {}) => {
    const encoded = encode(request);
    const bytes = gzipSync(typeof encoded === 'string' ? encoded : encodeOtlp(encoded));
    const type = encoding === 'JSON' ? 'application/json' : 'application/x-protobuf';
    return send(bytes, { ...options, headers: { 'Content-Encoding': 'gzip', 'Content-Type': type } });
  };

  test.each(['earlier', 'later'])('is stored with id, project, message and metadata: %s', async version => {
    const project = `drain-${encoding}-${version}`;
    const records = [drainRecord('e-1', { project: text(project) })];
    const source = 'cloudflare.logs.prod';
    const request = version === 'earlier' ? earlier(source, records) : later(source, project, records);
    expect((await gzipped(request)).message).toEqual({});
    await expect.poll(() => rowsOf(project)).toHaveLength(1);
    expect(await rowsOf(project)).toMatchObject([
      {
        id: 'e-1',
        event_message: 'GET | 503 | e-1',
        timestamp: Number(micros(NOW)) - 3,
        metadata: {
          level: 'error',
          request: { method: 'GET', path: '/rest/v1/todos' },
          response: { status_code: 503 },
          severity_number: 17,
        },
      },
    ]);
    const search = { kind: 'edge', project, query: 'path:/rest/v1/todos status:503' };
    await expect.poll(async () => (await app.query('logs.search', search)).rows).toHaveLength(1);
  });

  test('without a project gets that of the token, if it is pinned to one', async () => {
    const records = [drainRecord(`p-${encoding}`)];
    const { pinned } = tokens.secrets;
    expect((await gzipped(earlier('postgres.logs', records), { token: pinned })).message).toEqual({});
    await expect.poll(() => idsOf(app, 'mine', 'postgres')).toContain(`p-${encoding}`);
  });

  test('with the empty batch by which the drain is tested gets 200', async () => {
    expect(await gzipped(later('Logflare', '', []))).toMatchObject({ status: 200, message: {} });
  });
});

describe('an ordinary service', () => {
  const checkout = (message: string, resource = {}) =>
    otlpRequest({ 'service.name': 'checkout', ...resource }, [record(message)]);
  const warnings = () => app.events.filter(event => event.type === 'otlp_records_rejected');

  test('with a token for one kind and one project is stored there', async () => {
    const { service } = tokens.secrets;
    expect((await send(checkout('a'), { token: service })).message).toEqual({});
    await expect.poll(() => countOf('shop', 'function')).toBe(1);
  });

  test('with another token is rejected, and response and log name the source and the fix', async () => {
    const before = warnings().length;
    const { message } = await send(checkout('b'));
    const expected =
      /The source "checkout" is unknown\. Send it with a token for one log kind, such as --scope ingest:/;
    expect(message).toMatchObject({ partialSuccess: { errorMessage: expect.stringMatching(expected) } });
    expect(warnings().slice(before)).toEqual([
      {
        type: 'otlp_records_rejected',
        tokenName: 'DENDRO_API_KEY',
        message: expect.stringMatching(expected),
      },
    ]);
  });

  test('with a token for several projects needs one of them', async () => {
    const before = warnings().length;
    const { twoProjects: token } = tokens.secrets;
    const { message } = await send(checkout('c'), { token });
    expect(message).toMatchObject({ partialSuccess: { rejectedLogRecords: '1' } });
    expect(warnings().slice(before)).toEqual([
      {
        type: 'otlp_records_rejected',
        tokenName: 'twoProjects',
        message: expect.stringMatching(/^The record has no project\..*service\.namespace/),
      },
    ]);
    expect((await send(checkout('d', { 'service.namespace': 'mine' }), { token })).message).toEqual({});
    await expect.poll(() => countOf('mine', 'function')).toBe(1);
  });

  test.each([
    [
      { 'service.name': 'auth' },
      'of the kind auth. If service.name',
      'set source_name or X-Source to function.',
    ],
    [{ 'service.namespace': 'team' }, 'the project \\"team\\"', 'comes from service.namespace'],
  ])('named %j, with a token for another kind or project, gets the fix', async (resource, problem, fix) => {
    const { message } = await send(checkout('e', resource), { token: tokens.secrets.service });
    expect(JSON.stringify(message)).toContain(problem);
    expect(JSON.stringify(message)).toContain(fix);
  });

  test('sources after many records of another one are named in response and log, once each', async () => {
    const before = warnings().length;
    const requests = ['first', 'second'].map(name =>
      otlpRequest({ 'service.name': name }, Array(30).fill(record('m'))),
    );
    const { message } = await send({ resourceLogs: requests.flatMap(({ resourceLogs }) => resourceLogs) });
    expect(JSON.stringify(message)).toMatch(/Record 0: The source .*first.* Record 30: The source .*second/);
    expect(warnings().slice(before)).toMatchObject([
      { message: expect.stringContaining('"first"') },
      { message: expect.stringContaining('"second"') },
    ]);
  });

  test('the project of the token is no default for /api/logs', async () => {
    const { service } = tokens.secrets;
    const { status } = await sendLogs(app.internalUrl, [{ message: 'x' }], {
      token: service,
      query: '?source_name=function',
    });
    expect(status).toBe(422);
  });
});

describe('source and project', () => {
  const request = (project: string) =>
    otlpRequest({ 'service.name': 'storage', 'service.namespace': project }, [record(project)]);

  test('source_name wins over X-Source, and X-Source over service.name', async () => {
    await send(request('by-name'), { query: '?source_name=auth', headers: { 'X-Source': 'rest' } });
    await send(request('by-header'), { headers: { 'X-Source': 'rest' } });
    await send(request('by-service'));
    await expect
      .poll(async () => [
        await countOf('by-name', 'auth'),
        await countOf('by-header', 'rest'),
        await countOf('by-service', 'storage'),
      ])
      .toEqual([1, 1, 1]);
  });

  test.each([
    '?source_name=edge&source_name=auth',
    '?source_name=edge&source=auth',
    '?source_name=edge&source_name=nope',
  ])('%s gets 400, and 403 with a token for one kind', async query => {
    const { status, message } = await send(request('conflict'), { query });
    expect([status, message]).toEqual([
      400,
      {
        code: 3,
        message: expect.stringMatching(/^the values of source_name and source .* different log kinds/),
      },
    ]);
    expect((await send(request('conflict'), { query, token: tokens.secrets.edge })).status).toBe(403);
  });

  test.each([
    ['service.namespace', { 'service.namespace': 'ns-1', project: 'x' }, { project: 'y' }, 'ns-1'],
    ['attribute project', { project: 'x' }, { project: 'p-1', project_ref: 'y' }, 'p-1'],
    ['attribute project_ref', { project: 'x' }, { project_ref: 'p-2' }, 'p-2'],
    ['resource attribute project', { project: 'p-3', project_ref: 'x' }, {}, 'p-3'],
    ['resource attribute project_ref', { project_ref: 'p-4' }, {}, 'p-4'],
  ])('the project comes from the %s', async (_, resource, attributes, project) => {
    const fields = Object.entries(attributes).map(([key, value]) => attribute(key, text(value)));
    await send(otlpRequest({ 'service.name': 'edge', ...resource }, [record('m', { attributes: fields })]));
    await expect.poll(() => countOf(project)).toBe(1);
  });

  test('flat attributes with dots fill the extracted columns', async () => {
    const attributes = [
      attribute('function_id', text('f-1')),
      attribute('execution_time_ms', { doubleValue: 12.5 }),
      attribute('response.status_code', { intValue: 503 }),
    ];
    const resource = { 'service.name': 'function_edge', 'service.namespace': 'dotted' };
    await send(otlpRequest(resource, [record('call', { attributes })]));
    const stats = async () =>
      (await app.query('functions.invocation-stats', { project: 'dotted', function_id: 'f-1' })).rows;
    await expect.poll(stats).toMatchObject([{ count: 1, error_count: 1, max_execution_time: 12.5 }]);
  });

  test('records of an unknown source, or of a kind or project that the token does not include, are rejected', async () => {
    const requestOf = (kinds: string[], projects: string[]) => ({
      resourceLogs: kinds.flatMap(kind =>
        projects.flatMap(
          project =>
            otlpRequest({ 'service.name': kind, 'service.namespace': project }, [record(project)])
              .resourceLogs,
        ),
      ),
    });
    const expectOneRejected = async (body: OtlpObject, options: OtlpOptions, words: string) =>
      expect(await send(body, options)).toMatchObject({
        status: 200,
        message: {
          partialSuccess: { rejectedLogRecords: '1', errorMessage: expect.stringContaining(words) },
        },
      });
    const { edge, pinned } = tokens.secrets;
    const twoKinds = requestOf(['edge', 'storage'], ['scoped']);
    await expectOneRejected(twoKinds, { token: edge }, 'kind storage');
    for (const query of ['?source_name=storage', '?source_name=nope'])
      expect((await send(twoKinds, { token: edge, query })).status).toBe(403);
    await expectOneRejected(requestOf(['edge'], ['mine', 'other']), { token: pinned }, 'project');
    await expectOneRejected(request('nowhere'), { query: '?source_name=nope' }, '"nope" is unknown');
    await expect.poll(async () => [await countOf('scoped'), await countOf('mine')]).toEqual([1, 1]);
    expect([await countOf('scoped', 'storage'), await countOf('other')]).toEqual([0, 0]);
  });

  test('the time falls back to the observed time, then to the time of arrival', async () => {
    const resource = { 'service.name': 'edge', 'service.namespace': 'times' };
    const records = [
      { timeUnixNano: '0', observedTimeUnixNano: nanos(-9), body: text('observed') },
      { body: text('none') },
    ];
    await send(otlpRequest(resource, records));
    const times = async () => (await rowsOf('times')).map(row => row['timestamp']);
    await expect.poll(times).toEqual([Number(micros(NOW)), Number(micros(NOW)) - 9]);
  });
});

describe('repeats', () => {
  const request = (project: string) => ({
    resourceLogs: ['edge', 'auth', 'edge'].flatMap(
      kind =>
        otlpRequest({ 'service.name': kind, 'service.namespace': project }, [record(kind)]).resourceLogs,
    ),
  });
  const counts = async (project: string) => [await countOf(project), await countOf(project, 'auth')];

  test('the same bytes are stored once, compressed or not', async () => {
    const bytes = encodeOtlp(request('repeat'));
    const first = await send(bytes);
    const second = await send(gzipSync(bytes), { headers: { 'Content-Encoding': 'gzip' } });
    expect([first.status, second.status, second.message]).toEqual([200, 200, {}]);
    await expect.poll(() => counts('repeat')).toEqual([2, 1]);
  });

  test('a repeat gets the counts of the first response, and its rejected records are quarantined once', async () => {
    const quarantined = () =>
      app.events.reduce((sum, event) => (event.type === 'records_quarantined' ? sum + event.count : sum), 0);
    const withUnknown = {
      resourceLogs: [
        ...request('repeat-rejected').resourceLogs,
        ...otlpRequest({ 'service.name': 'what' }, [record('lost')]).resourceLogs,
      ],
    };
    const before = quarantined();
    const first = await send(withUnknown);
    await expect.poll(quarantined).toBe(before + 1);
    const second = await send(withUnknown);
    expect(second.message).toEqual(first.message);
    expect(first.message).toMatchObject({ partialSuccess: { rejectedLogRecords: '1' } });
    await expect.poll(() => counts('repeat-rejected')).toEqual([2, 1]);
    await sendLogs(app.internalUrl, [{ message: 'no project' }]);
    await expect.poll(quarantined).toBe(before + 2);
  });

  test.each([
    ['without a key', {}],
    ['with an Idempotency-Key', { 'Idempotency-Key': 'otlp-source' }],
  ])('the same bytes for another source are no repeat, %s', async (name, headers) => {
    const project = `source ${name}`;
    const resources = ['edge', 'my-shop'].map(service =>
      otlpRequest({ 'service.name': service, 'service.namespace': project }, [record(service)]),
    );
    const bytes = encodeOtlp({ resourceLogs: resources.flatMap(({ resourceLogs }) => resourceLogs) });
    expect((await send(bytes, { headers })).message).toMatchObject({
      partialSuccess: { rejectedLogRecords: '1' },
    });
    for (let attempt = 0; attempt < 2; attempt++)
      expect((await send(bytes, { headers, query: '?source_name=edge' })).message).toEqual({});
    await expect.poll(() => countOf(project)).toBe(3);
  });

  test('an Idempotency-Key with other bytes gets 422, and nothing of that request is stored', async () => {
    const headers = { 'Idempotency-Key': 'otlp-1' };
    await send(otlpRequest({ 'service.name': 'edge', 'service.namespace': 'key' }, [record('a')]), {
      headers,
    });
    const { status, message } = await send(request('key-2'), { headers });
    expect([status, message['message']]).toEqual([422, expect.stringContaining('Idempotency-Key')]);
    expect((await send(request('key-2'))).status).toBe(200);
    await expect.poll(() => counts('key-2')).toEqual([2, 1]);
  });
});

describe('malformed requests store nothing', () => {
  const valid = encodeOtlp(
    otlpRequest({ 'service.name': 'edge', 'service.namespace': 'bad' }, [record('a')]),
  );

  test('a protobuf body that is cut anywhere gets 400', async () => {
    for (let length = 1; length < valid.length; length += 3) {
      const { status, message } = await send(valid.subarray(0, length));
      expect([status, message]).toEqual([
        400,
        { code: 3, message: expect.stringMatching(/^the body is not a valid protobuf message: /) },
      ]);
    }
    expect(await countOf('bad')).toBe(0);
  });

  test('a body that is not an OTLP message gets 400', async () => {
    const protobuf = {
      'a varint in place of a message': [0x08, 0x01],
      'a wire type that does not exist': [0x0f],
      'a group': [0x0b, 0x0c],
      'the field number 0': [0x00, 0x00],
      'an integer of 11 bytes': [0x10, ...Array(10).fill(0xff), 0x01],
      'a length of 2^63': [0x0a, ...Array(8).fill(0xff), 0x7f],
      'random text': [...Buffer.from('hello, this is not protobuf')],
    };
    for (const [name, bytes] of Object.entries(protobuf))
      expect((await send(Buffer.from(bytes))).status, name).toBe(400);
    const records = ['"a"', '{"timeUnixNano":"now"}', '{"traceId":"xyz"}', '{"body":{"stringValue":1}}'];
    const bodies = records.map(json => `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${json}]}]}]}`);
    for (const body of ['{', '', '[]', '{"resourceLogs":{}}', ...bodies]) {
      const { status, headers, message } = await send(body);
      expect([status, headers.get('content-type'), message['code']]).toEqual([400, 'application/json', 3]);
    }
  });

  test('every other error is a Status too', async () => {
    for (const headers of [{ 'Content-Type': 'application/grpc' }, { 'Content-Encoding': 'lz4' }])
      expect((await send(valid, { headers })).status).toBe(415);
    const tooLarge = gzipSync(Buffer.alloc(16 * 1024 * 1024 + 1));
    const { status, message } = await send(tooLarge, { headers: { 'Content-Encoding': 'gzip' } });
    expect([status, message['code']]).toEqual([413, 3]);
    const response = await fetch(`${app.internalUrl}/v1/logs`, { headers: { 'X-API-KEY': API_KEY } });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await response.json()).toEqual({ code: 3, message: 'method GET is not allowed; allowed: POST' });
  });

  test('unknown fields are ignored', async () => {
    const json = JSON.stringify({
      ...otlpRequest({ 'service.name': 'edge', 'service.namespace': 'unknown-fields' }, [
        record('a', { somethingNew: [1] }),
      ]),
      more: 1,
    });
    const unknownField = Buffer.from([0xfa, 0x01, 0x02, 0x68, 0x69, 0x85, 0x02, 1, 2, 3, 4]);
    const protobuf = encodeOtlp(
      otlpRequest({ 'service.name': 'edge', 'service.namespace': 'unknown-fields' }, [record('b')]),
    );
    expect((await send(json)).message).toEqual({});
    expect((await send(Buffer.concat([protobuf, unknownField]))).message).toEqual({});
    await expect.poll(() => countOf('unknown-fields')).toBe(2);
  });
});
