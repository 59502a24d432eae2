import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Spool } from '../../src/intake/spool.ts';
import { Outbox } from '../../src/store/clickhouse/outbox.ts';
import { DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { inspectFile } from '../../src/store/duckdb/inspect-file.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { replaceInBlocks } from '../support/duckdb-blocks.ts';
import { sendLogs } from '../support/logs.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServer,
} from '../support/process.ts';
import { functionEdgeRecord, record } from '../support/record.ts';

const AT = '2026-11-14T12:00:00Z';
const BLOCK_BYTES = 256 * 1024;
const HEADERS_BYTES = 3 * 4096;

let directory: ReturnType<typeof createTempDirectory>;
const file = () => join(directory.path, 'dendro.duckdb');

/** A store with several parts and kinds, spooled records of a server that was killed, and two quarantined records. */
async function fillDirectory(): Promise<void> {
  const store = await openStore(testStoreOptions(directory.path));
  for (let first = 0; first < 600; first += 200) {
    const ids = Array.from({ length: 200 }, (_, i) => `id-${first + i}`);
    const functions = ids.map((id, i) =>
      functionEdgeRecord({ id, at: AT, ms: i % 90, status: 200 + (i % 3) }),
    );
    await store.apply({ ...toLogLines('function_edge', functions), firstSequence: first });
    const others = ids.map(id => record({ id, at: AT, message: `message of ${id}` }));
    await store.apply({ ...toLogLines('auth', others), firstSequence: first });
    await store.flush(LOG_KINDS);
  }
  await store.close();
  const server = await startServer(['--data', directory.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  const body = [{ project: 'p', message: 'spooled' }, { message: 'no project' }, 7];
  expect((await sendLogs(server.internalUrl, body, { token: PROCESS_API_KEY })).accepted).toBe(1);
  server.signal('SIGTERM');
  await server.ended;
}

beforeAll(async () => {
  directory = createTempDirectory();
  await fillDirectory();
});
afterAll(() => directory.remove());

const checkDeep = (...flags: string[]) => runDendro(['check', '--deep', '--data', directory.path, ...flags]);

/** The content of every file in a directory, by name. */
const readFiles = (path: string): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(({ parentPath, name }) => [
        join(parentPath, name),
        readFileSync(join(parentPath, name)).toString('base64'),
      ]),
  );

/** All rows of all tables as text, or the error. Independent of the code under test. */
async function readRows(): Promise<string> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run(`attach '${file()}' as logs (read_only)`);
    const tables = await connection.runAndReadAll(
      "select table_name from duckdb_tables() where database_name = 'logs' order by 1",
    );
    const rows: string[] = [];
    for (const [table] of tables.getRows())
      rows.push(
        String(
          (await connection.runAndReadAll(`select * from logs.${table}`))
            .getRowsJson()
            .map(row => JSON.stringify(row)),
        ),
      );
    return rows.join('\n');
  } catch (error) {
    return (error as Error).message;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

describe('dendro check --deep', () => {
  test('counts all records of a sound directory, as text and as JSON', async () => {
    expect(await checkDeep()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^read 1200 stored, 1 spooled and 2 quarantined records; no damage found\n$/,
      ),
    });
    const { code, stdout } = await checkDeep('--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ records: { spooled: 1, quarantined: 2 }, damages: [] });
  });

  test('changes no file of the embedded store', async () => {
    const before = readFiles(directory.path);
    await checkDeep();
    expect(readFiles(directory.path)).toEqual(before);
  });

  test('reads the outbox of a ClickHouse store and changes no file, also if a crash left some', async () => {
    const data = createTempDirectory();
    const outboxDirectory = join(data.path, 'clickhouse');
    const outbox = await Outbox.open(outboxDirectory);
    const lines = toLogLines('auth', [record({ at: AT }), record({ at: AT })]);
    const acknowledged = await outbox.add({ ...lines, kind: 'edge', firstSequence: 0 });
    const blockFile = join(outboxDirectory, 'edge.block');
    copyFileSync(blockFile, join(data.path, 'copy'));
    await outbox.acknowledge(acknowledged);
    copyFileSync(join(data.path, 'copy'), blockFile); // as if the process had been killed before it deleted the file
    writeFileSync(`${blockFile}.new`, 'a part of a block');
    await outbox.add({ ...lines, firstSequence: 0 });
    // A spool that knows the sequence numbers of the outbox: without one, its files would be missing.
    const durableUpTo = (kind: LogKind) => outbox.durableUpTo(kind);
    await (await Spool.open(join(data.path, 'spool'), durableUpTo, () => {})).close();
    const before = readFiles(data.path);
    const { code, stdout } = await runDendro([
      ...['check', '--deep', '--data', data.path],
      ...['--store', 'clickhouse://u:p@127.0.0.1:1/d'],
    ]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('read 2 stored, 0 spooled')]);
    expect(readFiles(data.path)).toEqual(before);
    data.remove();
  });

  test('finds every changed byte of the store that changes a record', async () => {
    const content = readFileSync(file());
    const original = await readRows();
    const blocks = (content.length - HEADERS_BYTES) / BLOCK_BYTES;
    const offsets = [0, 9, 100, 4096, 4110, 8192, 8210];
    for (let block = 0; block < blocks; block++)
      offsets.push(...[40, 9_001].map(at => HEADERS_BYTES + block * BLOCK_BYTES + at));
    let changes = 0;
    for (const offset of offsets) {
      const flipped = Buffer.from(content);
      flipped[offset] = (flipped[offset] ?? 0) ^ 4;
      writeFileSync(file(), flipped);
      const isChanged = (await readRows()) !== original;
      const { damages } = await inspectFile({
        dataDirectory: directory.path,
        memoryLimit: '500MB',
        onProgress: () => {},
      });
      if (isChanged) expect([offset, damages.length > 0]).toEqual([offset, true]);
      if (isChanged) changes++;
    }
    writeFileSync(file(), content);
    expect(changes).toBeGreaterThan(10);
  });

  test('reports a damaged block of the store and of the spool, and a wrong record in a sound block', async () => {
    const content = readFileSync(file());
    const segment = join(directory.path, 'spool/000000000001.spool');
    const spooled = readFileSync(segment);
    expect(replaceInBlocks(file(), 'id-333', 'id-334', true)).toBeGreaterThan(0);
    writeFileSync(segment, Buffer.concat([spooled.subarray(0, 50), Buffer.from('x'), spooled.subarray(51)]));
    const { code, stdout, stderr } = await checkDeep('--json');
    expect(code).toBe(1);
    expect(onlyLine({ code, stdout, stderr })).toMatch(
      /^dendro: \d damaged places in .*; nothing was changed/,
    );
    const { damages } = JSON.parse(stdout);
    expect(damages).toContainEqual({
      file: 'dendro.duckdb',
      place: expect.stringMatching(/^table (auth|function_edge)_part_\d+$/),
      problem: 'its records differ from those that were written',
    });
    expect(damages).toContainEqual({
      file: 'spool/000000000001.spool',
      place: `bytes 0 to ${spooled.length - 1}`,
      problem: expect.stringContaining('checksum'),
    });
    writeFileSync(file(), content);
    replaceInBlocks(file(), 'id-333', 'damaged'.slice(0, 6), false);
    const text = await checkDeep();
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(
      /^dendro\.duckdb, table \w+_part_\d+, row group 0 \(rows 0 to 199\), column id, bytes \d+ to \d+: .*checksum/m,
    );
    writeFileSync(file(), content);
    writeFileSync(segment, spooled);
  });

  test('says which process uses the directory, and that a directory does not exist', async () => {
    const server = await startServer(['--data', directory.path], {
      env: { DENDRO_API_KEY: PROCESS_API_KEY },
    });
    const inUse = await checkDeep();
    server.signal('SIGTERM');
    await server.ended;
    expect([inUse.code, onlyLine(inUse)]).toEqual([
      1,
      expect.stringContaining('is in use by another process'),
    ]);
    const missing = await runDendro(['check', '--deep', '--data', join(directory.path, 'none')]);
    expect([missing.code, onlyLine(missing)]).toEqual([
      1,
      expect.stringContaining('there is no data directory'),
    ]);
  });
});
