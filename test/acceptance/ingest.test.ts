import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerHere,
  startServerHere,
} from '../support/process.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
const NOW = Date.now();

/** `count` records of one project, one second apart, newest first. */
const edgeLines = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `edge-${i}`,
    timestamp: new Date(NOW - 60_000 - i * 1000).toISOString(),
    project: 'alpha',
    event_message: `GET ${i}`,
    metadata: { request: { path: '/rest/v1/things', url: 'https://alpha.example/rest/v1/things' } },
  }));

const toNdjson = (values: readonly unknown[]) => values.map(value => `${JSON.stringify(value)}\n`).join('');

describe('dendro ingest', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerHere | undefined;
  const checkout = process.cwd();
  beforeEach(() => {
    directory = createTempDirectory();
    process.chdir(directory.path);
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    process.chdir(checkout);
    directory.remove();
  });

  const write = (name: string, content: string | Buffer) => {
    writeFileSync(join(directory.path, name), content);
    return name;
  };
  const ingest = (args: readonly string[], input?: string | Buffer) =>
    runDendro(
      ['ingest', '--data', 'data', '--source', 'edge', ...args],
      input === undefined ? {} : { input },
    );
  const queryIds = async (project = 'alpha') => {
    const args = ['query', 'logs.all', '--data', 'data', '--project', project, '--json'];
    const { stdout } = await runDendro(args);
    return (JSON.parse(stdout) as { result: { id: string }[] }).result.map(({ id }) => id);
  };
  const idsOf = (count: number) => Array.from({ length: count }, (_, i) => `edge-${i}`);

  test('without --data, it says which directory it uses', async () => {
    const file = write('edge.ndjson', `${JSON.stringify({ project: 'alpha', message: 'm' })}\n`);
    const { code, stderr } = await runDendro(['ingest', '--source', 'edge', file]);
    expect([code, stderr]).toEqual([0, `data directory: ${join(process.cwd(), 'data')}\n`]);
    expect((await ingest(['--again', file])).stderr).toBe('');
  });

  test('loaded records are served over HTTP', async () => {
    const edge = write('edge.ndjson', toNdjson(edgeLines(5)));
    expect(await ingest([edge])).toEqual({
      code: 0,
      stdout: 'edge.ndjson: 5 accepted, 0 rejected\n',
      stderr: '',
    });
    const calls = [120, 480].map((ms, i) => ({
      timestamp: new Date(NOW - 60_000).toISOString(),
      event_message: 'call',
      metadata: {
        project_ref: 'alpha',
        function_id: 'hello',
        execution_time_ms: ms,
        response: { status_code: 200 + i * 300 },
      },
    }));
    const loaded = await runDendro(['ingest', '-', '--data', 'data', '--source', 'deno-relay-logs'], {
      input: toNdjson(calls),
    });
    expect(loaded).toMatchObject({ code: 0, stdout: expect.stringContaining('2 accepted, 0 rejected') });

    server = await startServerHere(['--data', 'data'], { env });
    const ask = async (query: string) =>
      (
        await fetchResponse(`${server?.url}/api/endpoints/query/${query}`, {
          headers: { 'X-API-KEY': PROCESS_API_KEY },
        })
      ).rows;
    const logs = await ask('logs.all?project=alpha');
    expect(logs.map(row => row['id'])).toEqual(idsOf(5));
    expect(logs[0]).toMatchObject({ timestamp: (NOW - 60_000) * 1000, event_message: 'GET 0' });
    const stats = await ask('functions.invocation-stats?project=alpha&function_id=hello&interval=1hr');
    expect(stats).toEqual([
      expect.objectContaining({
        min_execution_time: 120,
        max_execution_time: 480,
        avg_execution_time: 300,
        count: 2,
        error_count: 1,
      }),
    ]);
    const counts = await ask('usage.api-counts?project=alpha\\.example&interval=daily');
    expect(counts.reduce((sum, row) => sum + Number(row['total_rest_requests']), 0)).toBe(5);
  });

  test('a file that is not a quarantine file needs --source: one line, exit 2', async () => {
    const file = write('edge.ndjson', toNdjson(edgeLines(1)));
    const outcome = await runDendro(['ingest', '--data', 'data', file]);
    expect(outcome.code).toBe(2);
    expect(onlyLine(outcome)).toContain('--source');
  });

  /** Its third record is the first one that is rejected with no_project, the fourth the first one with invalid_json. */
  const mixedQuarantine = () => {
    const [record] = edgeLines(1);
    const lines = [
      { quarantine: { source: 'edge' }, record },
      { quarantine: { source: 'auth' }, record },
      { quarantine: { source: 'auth' }, record: { event_message: 'of no project' } },
      { quarantine: { source: 'edge' }, line: 'no json' },
      { quarantine: { source: 'edge' }, record: { event_message: 'of no project' } },
      { quarantine: { source: 'checkout' }, record },
    ];
    return write('quarantine.ndjson', toNdjson(lines));
  };
  const POSITIONS = [
    'quarantine.ndjson: 2 accepted, 4 rejected',
    expect.stringContaining('  1 invalid_json, first at record 4: '),
    expect.stringContaining('  1 unknown_source, first at record 6: '),
    expect.stringContaining('  2 no_project, first at record 3: '),
  ];
  const sortedLines = (text: string) => {
    const [first, ...others] = text.trimEnd().split('\n');
    return [first, ...others.sort()];
  };

  test('the summary of a quarantine file with several kinds has the positions of its rejected records', async () => {
    const args = ['ingest', '--data', 'data', mixedQuarantine()];
    const { stdout } = await runDendro(args);
    expect(sortedLines(stdout)).toEqual(POSITIONS);
  });

  describe('into a running server', () => {
    const send = (args: readonly string[]) =>
      runDendro(['ingest', '--url', server?.internalUrl ?? '', ...args], { env });

    test('stores the records and prints the same summary', async () => {
      server = await startServerHere(['--data', 'data'], { env });
      const lines = [...edgeLines(3), { event_message: 'of no project' }, ...edgeLines(5).slice(3)];
      const file = write('edge.ndjson.gz', gzipSync(toNdjson(lines)));
      for (const [flags, exitCode] of [
        [[], 1],
        [['--allow-rejected'], 0],
      ] as const) {
        const { code, stdout, stderr } = await send(['--source', 'edge', file, ...flags]);
        expect({ code, stderr }).toEqual({ code: exitCode, stderr: '' });
        expect(stdout).toContain(
          'edge.ndjson.gz: 5 accepted, 1 rejected\n  1 no_project, first at record 4: ',
        );
      }
      await server.stop();
      expect(await queryIds()).toEqual(idsOf(5));
    });

    test('rejected records can be loaded from the quarantine file, each with its own source', async () => {
      server = await startServerHere(['--data', 'data', '--retention-days', '1'], { env });
      const old = new Date(NOW - 3 * 86_400_000).toISOString();
      const body = toNdjson([
        {
          id: 'old-edge',
          project: 'alpha',
          message: 'late',
          timestamp: old,
          metadata: { n: 12345678901234567890n.toString() },
        },
      ]);
      for (const source of ['edge', 'auth']) {
        const { status } = await fetch(`${server.internalUrl}/api/logs?source_name=${source}`, {
          method: 'POST',
          body,
          headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' },
        });
        expect(status).toBe(422);
      }
      await server.stop();
      const again = await runDendro(['ingest', '--data', 'data', 'data/quarantine.ndjson'], {});
      expect(again).toEqual({
        code: 0,
        stdout: 'data/quarantine.ndjson: 2 accepted, 0 rejected\n',
        stderr: '',
      });
      const args = [
        'query',
        'logs.all',
        '--data',
        'data',
        '--project',
        'alpha',
        '--param',
        'project_tier=PRO',
        '--json',
      ];
      const { stdout } = await runDendro(args);
      expect(JSON.parse(stdout).result).toMatchObject([{ id: 'old-edge', event_message: 'late' }]);
    });
  });

  // test/logs/read-file.test.ts has all formats.
  test.each<[string, () => Buffer]>([
    ['NDJSON', () => Buffer.from(toNdjson(edgeLines(3)))],
    ['gzipped JSON', () => gzipSync(JSON.stringify(edgeLines(3)))],
  ])('reads %s from a file and from standard input', async (_, content) => {
    const file = write('records', content());
    expect(await ingest([file])).toEqual({
      code: 0,
      stdout: 'records: 3 accepted, 0 rejected\n',
      stderr: '',
    });
    const second = await ingest(['-', '--again'], content());
    expect(second).toEqual({ code: 0, stdout: 'standard input: 3 accepted, 0 rejected\n', stderr: '' });
    expect(await queryIds()).toEqual(idsOf(3).flatMap(id => [id, id]));
  });

  test('reads Parquet, and loads the same file once', async () => {
    const file = join(directory.path, 'records.parquet');
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    await connection.run(
      `copy (
        select 'edge-' || i as id, make_timestamp(${NOW - 60_000} * 1000 - i * 1000000) as timestamp, 'alpha' as project,
          'GET ' || i as event_message, {'request': {'path': '/rest/v1/things'}} as metadata
        from range(3) t(i)
      ) to '${file}' (format parquet)`,
    );
    connection.closeSync();
    instance.closeSync();
    expect(await ingest(['records.parquet'])).toEqual({
      code: 0,
      stdout: 'records.parquet: 3 accepted, 0 rejected\n',
      stderr: '',
    });
    expect((await ingest(['records.parquet'])).stdout).toContain('already loaded');
    expect(await queryIds()).toEqual(idsOf(3));
  });

  test('records of pino are loaded with their time and message', async () => {
    const time = NOW - 60_000;
    const line = { level: 30, time, msg: 'of pino', project: 'alpha', id: 'a' };
    expect((await ingest([write('services.ndjson', toNdjson([line]))])).code).toBe(0);
    const args = ['query', 'logs.all', '--data', 'data', '--project', 'alpha', '--json'];
    expect(JSON.parse((await runDendro(args)).stdout).result).toEqual([
      {
        id: 'a',
        timestamp: time * 1000,
        event_message: 'of pino',
        metadata: { level: 30 },
      },
    ]);
  });

  test('reports rejected records with their reasons, keeps the others and exits with 1', async () => {
    const [good] = edgeLines(1);
    const lines = [
      JSON.stringify(good),
      'no json',
      '[]',
      JSON.stringify({ ...good, project: '' }),
      JSON.stringify({ project: 'alpha', timestamp: good?.timestamp }),
      JSON.stringify({ ...good, timestamp: 'yesterday' }),
      JSON.stringify({ ...good, timestamp: new Date(NOW + 7_200_000).toISOString() }),
      JSON.stringify({ ...good, timestamp: '2001-01-01T00:00:00Z' }),
      JSON.stringify({ ...good, timestamp: '2001-01-02T00:00:00Z' }),
    ];
    const file = write('mixed.ndjson', lines.join('\n'));
    const { code, stdout, stderr } = await ingest([file]);
    expect(stderr).toBe('');
    expect(code).toBe(1);
    const [summary, ...reasons] = stdout.trimEnd().split('\n');
    expect(summary).toBe('mixed.ndjson: 1 accepted, 8 rejected');
    for (const code of [
      '1 invalid_json, first at record 2',
      '1 not_an_object, first at record 3',
      '1 no_project',
      '1 empty_record',
    ])
      expect(reasons).toContainEqual(expect.stringContaining(code));
    for (const code of ['1 invalid_timestamp', '1 in_the_future', '2 past_retention, first at record 8'])
      expect(reasons).toContainEqual(expect.stringContaining(code));
    expect(await queryIds()).toEqual(['edge-0']);
    const allowed = await ingest([file, '--again', '--allow-rejected']);
    expect([allowed.code, allowed.stdout.split('\n')[0]]).toEqual([0, summary]);
    const args = ['ingest', '--data', 'data', '--source', 'edge', '--again', file];
    expect((await runDendro(args, { env: { DENDRO_ALLOW_REJECTED: '1' } })).code).toBe(0);
  });

  test('--retention-days sets the age at which records are rejected', async () => {
    const old = edgeLines(1).map(line => ({
      ...line,
      timestamp: new Date(NOW - 40 * 86_400_000).toISOString(),
    }));
    const file = write('old.ndjson', toNdjson(old));
    const rejected = { code: 1, stdout: expect.stringContaining('0 accepted, 1 rejected') };
    expect(await ingest([file, '--retention-days', '30'])).toMatchObject(rejected);
    expect((await ingest([file, '--retention-days', '50'])).stdout).toContain('1 accepted, 0 rejected');
  });

  test.each<[string, () => Buffer | undefined, string]>([
    ['does not exist', () => undefined, 'there is no such file'],
    ['is truncated JSON', () => Buffer.from(JSON.stringify(edgeLines(3)).slice(0, -20)), 'JSON'],
    ['is truncated gzip', () => gzipSync(toNdjson(edgeLines(300))).subarray(0, 400), 'gzip'],
    ['is truncated Parquet', () => Buffer.from('PAR1 and no more'), ''],
  ])('a file that %s: one line that names it, exit 1, and no record is kept', async (_, content, word) => {
    const bytes = content();
    if (bytes !== undefined) write('broken.file', bytes);
    const outcome = await ingest(['broken.file']);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('broken.file');
    expect(onlyLine(outcome)).toContain(word);
    expect(await queryIds()).toEqual([]);
  });

  test('a file of 20,000 lines is loaded completely', async () => {
    const lines = edgeLines(20_000).map((line, i) => ({
      ...line,
      timestamp: NOW * 1000 - 60_000_000 - i * 1000,
    }));
    const { code, stdout } = await ingest([write('many.ndjson.gz', gzipSync(toNdjson(lines)))]);
    expect(code).toBe(0);
    expect(stdout).toBe('many.ndjson.gz: 20,000 accepted, 0 rejected\n');
    expect(await queryIds()).toEqual(idsOf(100));
  });
});
