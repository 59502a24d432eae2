// OpenTelemetry's own exporters send to a server that is killed and restarted meanwhile, and over TLS; and bodies that are not OTLP.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OTLPLogExporter as HttpExporter } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPLogExporter as ProtoExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider, type LogRecordExporter } from '@opentelemetry/sdk-logs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import {
  createTempDirectory,
  findFreePort,
  PROCESS_API_KEY,
  runDendro,
  type ServerProcess,
  startServer,
} from '../support/process.ts';
import { createSelfSigned } from '../support/self-signed.ts';

type EmittedRecord = Parameters<ReturnType<LoggerProvider['getLogger']>['emit']>[0];

let directory: ReturnType<typeof createTempDirectory>;
let internalPort: number;
let server: ServerProcess;
const start = async () => {
  const ports = ['--port', String(await findFreePort()), '--internal-port', String(internalPort)];
  server = await startServer(['--data', directory.path, ...ports], {
    env: { DENDRO_API_KEY: PROCESS_API_KEY },
  });
};
beforeAll(async () => {
  directory = createTempDirectory();
  internalPort = await findFreePort();
  await start();
});
afterAll(async () => {
  await server.stop();
  directory.remove();
});

const rowsOf = async (project: string) => {
  const url = `${server.url}/api/endpoints/query/logs.all?project=${project}&project_tier=ENTERPRISE`;
  return (await fetchResponse(url, { headers: { 'X-API-KEY': PROCESS_API_KEY } })).rows;
};

/** The exporters give up after 5 retries, which a slow start of the server can outlast. */
function untilSuccess(exporter: LogRecordExporter): LogRecordExporter {
  return {
    export(records, report) {
      exporter.export(records, result => {
        if (result.code === 0) report(result);
        else setTimeout(() => this.export(records, report), 500);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

describe.each([
  ['protobuf', ProtoExporter],
  ['JSON', HttpExporter],
])('the exporter for %s', (encoding, Exporter) => {
  const project = `exporter-${encoding}`;
  const createProvider = (compression: string) => {
    const exporter = new Exporter({
      url: `http://127.0.0.1:${internalPort}/v1/logs`,
      headers: { 'X-API-KEY': PROCESS_API_KEY },
      compression: compression as never, // the enum is in a package of its own
      timeoutMillis: 60_000,
    });
    return new LoggerProvider({
      resource: resourceFromAttributes({ 'service.name': 'edge', 'service.namespace': project }),
      processors: [
        new BatchLogRecordProcessor({ exporter: untilSuccess(exporter), exportTimeoutMillis: 60_000 }),
      ],
    });
  };

  test('records sent before, while and after the server is killed are stored once', async () => {
    const provider = createProvider('gzip');
    const logger = provider.getLogger('test', '1.0');
    const emit = (phase: string) => {
      for (let index = 0; index < 20; index++)
        logger.emit({
          severityNumber: 9,
          severityText: 'INFO',
          body: `${phase} ${index}`,
          attributes: { count: index, tags: ['a', 'b'], request: { path: `/rest/v1/${phase}` } },
        });
    };
    emit('before');
    await provider.forceFlush();
    server.signal('SIGKILL');
    await server.ended;
    emit('while');
    const flushed = provider.forceFlush(); // the exporter retries while there is no server
    await start();
    await flushed;
    emit('after');
    await provider.shutdown();
    const expected = ['before', 'while', 'after'].flatMap(phase =>
      Array.from({ length: 20 }, (_, index) => `${phase} ${index}`),
    );
    const messages = async () => (await rowsOf(project)).map(row => row['event_message']).sort();
    await expect.poll(messages).toEqual(expected.sort());
    const rows = await rowsOf(project);
    expect(rows.find(row => row['event_message'] === 'after 7')).toMatchObject({
      metadata: {
        count: 7,
        tags: ['a', 'b'],
        request: { path: '/rest/v1/after' },
        level: 'INFO',
        severity_number: 9,
        scope: { name: 'test', version: '1.0' },
        resource: { 'service.name': 'edge', 'service.namespace': project },
      },
    });
  });
});

describe('an ordinary service over TLS', () => {
  const data = createTempDirectory();
  const { cert, key } = createSelfSigned();
  const file = (name: string, content: string) => {
    writeFileSync(join(data.path, name), content);
    return join(data.path, name);
  };
  let tls: ServerProcess;
  let token: string;
  beforeAll(async () => {
    const flags = ['--data', join(data.path, 'data'), '--name', 'checkout', '--scope', 'ingest:function'];
    token = (await runDendro(['token', 'create', ...flags, '--project', 'shop'])).stdout.trim();
    const files = ['--internal-tls-cert', file('cert.pem', cert), '--internal-tls-key', file('key.pem', key)];
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    tls = await startServer(['--data', join(data.path, 'data'), ...files, '--log-format', 'text'], { env });
  });
  afterAll(async () => {
    await tls.stop();
    data.remove();
  });

  const emit = async (
    Exporter: typeof ProtoExporter | typeof HttpExporter,
    token: string,
    ...records: readonly EmittedRecord[]
  ) => {
    const provider = new LoggerProvider({
      resource: resourceFromAttributes({ 'service.name': 'checkout' }),
      processors: [
        new BatchLogRecordProcessor({
          exporter: new Exporter({
            url: `${tls.internalUrl}/v1/logs`,
            headers: { 'X-API-KEY': token },
            httpAgentOptions: { ca: cert },
            timeoutMillis: 60_000,
          }),
        }),
      ],
    });
    for (const record of records) provider.getLogger('payments').emit({ severityNumber: 17, ...record });
    await provider.shutdown();
  };
  const search = async (expression = '') => {
    const query = encodeURIComponent(expression);
    const url = `${tls.url}/api/endpoints/query/logs.search?kind=function&project=shop&query=${query}`;
    const { rows } = await fetchResponse(url, { headers: { 'X-API-KEY': PROCESS_API_KEY } });
    return rows.map(row => [row['id'], row['event_message']]).sort();
  };

  test('is stored as what its token is for; without such a token, the log says what to do', async () => {
    expect(tls.internalUrl).toMatch(/^https:/);
    // As the drains of hosted Supabase projects: the message is the name of the event, and the body has the other fields.
    const event = (id: string) => ({
      eventName: 'order paid',
      body: { id, metadata: { order: { total: 12 } } },
    });
    await emit(ProtoExporter, token, { body: 'as protobuf' }, event('event-1'));
    await emit(HttpExporter, token, { body: 'as JSON' }, event('event-2'));
    await expect.poll(search).toHaveLength(4);
    expect((await search()).map(([, message]) => message).sort()).toEqual([
      'as JSON',
      'as protobuf',
      'order paid',
      'order paid',
    ]);
    expect(await search('order.total:12')).toEqual([
      ['event-1', 'order paid'],
      ['event-2', 'order paid'],
    ]);
    await emit(ProtoExporter, PROCESS_API_KEY, { body: 'lost' });
    await tls.untilError(
      'otlp_records_rejected: rejected OTLP log records (token DENDRO_API_KEY): The source "checkout" is unknown. Send it with a token for one log kind',
    );
  });
});
