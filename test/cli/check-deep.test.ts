import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Spool } from '../../src/intake/spool.ts';
import { Outbox } from '../../src/store/clickhouse/outbox.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { sendLogs } from '../support/logs.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServerHere,
} from '../support/process.ts';
import { functionEdgeRecord, record } from '../support/record.ts';

const AT = '2026-11-14T12:00:00Z';
const PARTS = ['auth-000002', 'auth-000004', 'function_edge-000001', 'function_edge-000003'].map(
  name => `parts/${name}.duckdb`,
);

let original: ReturnType<typeof createTempDirectory>;
/** A copy of the original for one test. */
let directory: ReturnType<typeof createTempDirectory>;
const pathOf = (name: string) => join(directory.path, name);

/** A store with several parts and kinds, spooled records, and two quarantined records. */
async function fillDirectory(path: string): Promise<void> {
  const store = await openStore(testStoreOptions(path));
  for (let first = 0; first < 400; first += 200) {
    const ids = Array.from({ length: 200 }, (_, i) => `id-${first + i}`);
    const functions = ids.map((id, i) =>
      functionEdgeRecord({ id, at: AT, ms: i % 90, status: 200 + (i % 3) }),
    );
    await store.apply({ ...toLogLines('function_edge', functions), firstSequence: first });
    await store.flush(LOG_KINDS);
    const others = ids.map(id => record({ id, at: AT, message: `message of ${id}` }));
    await store.apply({ ...toLogLines('auth', others), firstSequence: first });
    await store.flush(LOG_KINDS);
  }
  await store.close();
  const server = await startServerHere(['--data', path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  const body = [{ project: 'p', message: 'spooled' }, { message: 'no project' }, 7];
  expect((await sendLogs(server.internalUrl, body, { token: PROCESS_API_KEY })).accepted).toBe(1);
  await server.stop();
}

beforeAll(async () => {
  original = createTempDirectory();
  await fillDirectory(original.path);
  expect(
    (await runDendro(['token', 'create', '--name', 't', '--scope', 'query', '--data', original.path])).code,
  ).toBe(0);
});
afterAll(() => original.remove());
beforeEach(() => {
  directory = createTempDirectory();
  cpSync(original.path, directory.path, { recursive: true });
});
afterEach(() => directory.remove());

const checkDeep = (...flags: string[]) => runDendro(['check', '--deep', '--data', directory.path, ...flags]);

interface Report {
  readonly records: { readonly stored: number; readonly spooled: number; readonly quarantined: number };
  readonly damages: readonly { readonly file: string; readonly place: string; readonly problem: string }[];
}

/** Runs the check of a damaged directory, which must fail with one line and change nothing. */
async function findDamages(): Promise<Report['damages']> {
  const before = hashFiles(directory.path);
  const outcome = await checkDeep('--json');
  expect(outcome.code).toBe(1);
  const { damages } = JSON.parse(outcome.stdout) as Report;
  const places = damages.length === 1 ? '1 damaged place' : `${damages.length} damaged places`;
  expect(onlyLine(outcome)).toContain(`dendro: ${places} in ${directory.path}; nothing was changed`);
  expect(hashFiles(directory.path)).toEqual(before);
  return damages;
}

/** The checksum of every file in a directory, by path. */
function hashFiles(path: string): ReadonlyMap<string, string> {
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file, createHash('sha256').update(readFileSync(file)).digest('hex')];
    }),
  );
}

function flipBit(file: string, offset: number): void {
  const content = readFileSync(file);
  content[offset] = (content[offset] ?? 0) ^ 0b1000;
  writeFileSync(file, content);
}

describe('dendro check --deep', () => {
  test('counts all records of a sound directory, as text and as JSON, and changes no file', async () => {
    const before = hashFiles(directory.path);
    expect(await checkDeep()).toEqual({
      code: 0,
      stdout: 'read 800 stored, 1 spooled and 2 quarantined records; no damage found\n',
      stderr: '',
    });
    const { code, stdout } = await checkDeep('--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      records: { stored: 800, spooled: 1, quarantined: 2 },
      damages: [],
      store_of_earlier_release: false,
    });
    expect(hashFiles(directory.path)).toEqual(before);
  });

  test('names each part that is damaged, truncated, longer or missing', async () => {
    const [damaged = '', truncated = '', longer = '', missing = ''] = PARTS;
    const { length } = readFileSync(pathOf(longer));
    flipBit(pathOf(damaged), 20_000);
    truncateSync(pathOf(truncated), 4096);
    writeFileSync(pathOf(longer), 'x', { flag: 'a' });
    rmSync(pathOf(missing));
    const expected = [
      { file: damaged, place: '', problem: 'its content differs from what was written' },
      {
        file: truncated,
        place: '',
        problem: expect.stringMatching(/^the file has 4096 bytes, but \d+ were written$/),
      },
      { file: longer, place: '', problem: `the file has ${length + 1} bytes, but ${length} were written` },
      { file: missing, place: '', problem: 'the file does not exist' },
    ];
    const damages = [...(await findDamages())].sort((a, b) => (a.file < b.file ? -1 : 1));
    expect(damages).toEqual(expected);
    expect((await checkDeep()).stdout).toContain(`${missing}: the file does not exist\n`);
  });

  test('reports a part that a start has set aside', async () => {
    const [part = ''] = PARTS;
    truncateSync(pathOf(part), 4096);
    await (await openStore(testStoreOptions(directory.path))).close();
    expect(await findDamages()).toEqual([
      { file: part, place: '', problem: 'it was set aside, because it is damaged' },
    ]);
  });

  test('reports a store whose manifest and parts are all missing', async () => {
    for (const name of ['manifest.json', 'manifest.copy.json', 'dendro.duckdb', 'parts'])
      rmSync(pathOf(name), { recursive: true });
    expect(await findDamages()).toContainEqual({
      file: 'manifest.json',
      place: '',
      problem: 'it does not exist, although a server has used this data directory',
    });
  });

  test('reports damage in the spool, the quarantine, the tokens file and format.json, besides a part', async () => {
    const segment = 'spool/000000000001.spool';
    const { length } = readFileSync(pathOf(segment));
    flipBit(pathOf(segment), 50);
    writeFileSync(pathOf('quarantine.ndjson'), '{"changed":true}\n', { flag: 'r+' });
    writeFileSync(pathOf('tokens.json'), 'not JSON');
    writeFileSync(pathOf('format.json'), 'not JSON');
    const [part = ''] = PARTS;
    flipBit(pathOf(part), 20_000);
    const damages = await findDamages();
    expect(damages.map(({ file }) => file)).toEqual(
      expect.arrayContaining([part, segment, 'quarantine.ndjson', 'tokens.json', 'format.json']),
    );
    expect(damages).toContainEqual({
      file: segment,
      place: `bytes 0 to ${length - 1}`,
      problem: expect.stringContaining('checksum'),
    });
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
    await (await Spool.open({ directory: join(data.path, 'spool'), durableUpTo, observe: () => {} })).close();
    const before = hashFiles(data.path);
    const check = () =>
      runDendro([
        ...['check', '--deep', '--data', data.path],
        ...['--store', 'clickhouse://u:p@127.0.0.1:1/d'],
      ]);
    const { code, stdout } = await check();
    expect([code, stdout]).toEqual([0, expect.stringContaining('read 2 stored, 0 spooled')]);
    expect(hashFiles(data.path)).toEqual(before);
    flipBit(
      join(outboxDirectory, 'auth.block'),
      readFileSync(join(outboxDirectory, 'auth.block')).length - 20,
    );
    expect(await check()).toMatchObject({ code: 1, stdout: expect.stringContaining('clickhouse/') });
    rmSync(outboxDirectory, { recursive: true });
    expect(await check()).toMatchObject({ code: 1, stdout: expect.stringContaining('does not exist') });
    data.remove();
  });

  test('says that a store of an earlier release is converted by the next start', async () => {
    const data = join(directory.path, 'old');
    mkdirSync(data);
    writeFileSync(join(data, 'dendro.duckdb'), '');
    const outcome = await runDendro(['check', '--deep', '--data', data]);
    expect([outcome.code, outcome.stdout]).toEqual([0, expect.stringContaining('earlier release')]);
  });

  test('says which process uses the directory, and that a directory does not exist', async () => {
    const server = await startServerHere(['--data', directory.path], {
      env: { DENDRO_API_KEY: PROCESS_API_KEY },
    });
    const inUse = await checkDeep();
    await server.stop();
    expect([inUse.code, onlyLine(inUse)]).toEqual([
      1,
      expect.stringContaining('is in use by another process'),
    ]);
    const missing = await runDendro(['check', '--deep', '--data', pathOf('none')]);
    expect([missing.code, onlyLine(missing)]).toEqual([
      1,
      expect.stringContaining('there is no data directory'),
    ]);
  });
});
