// Data directories of earlier releases (test/upgrade/README.md): opened by a server, and by servers that are killed meanwhile.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, describe, expect, type TestContext, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import { fetchResponse, testStoreOptions } from '../support/app.ts';
import { reportFault, sized } from '../support/fault-report.ts';
import { sendLogs } from '../support/logs.ts';
import { changeOldStore, EDGE_COLUMNS, edgeRecords, SCHEMA_4 } from '../support/old-store.ts';
import { createTempDirectory, findFreePort, PROCESS_API_KEY, spawnDendro } from '../support/process.ts';
import { SEED } from '../support/seed.ts';
import { savedQuery } from '../support/store.ts';
import { kill, serve } from './server.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

const UPGRADE = join(import.meta.dirname, '../upgrade');
const readJson = (name: string) => JSON.parse(readFileSync(join(UPGRADE, name), 'utf8'));
const { embedded } = readJson('expected.json');
const expected020 = readJson('expected-0.2.0.json');
type Contents = Record<string, { readonly count: number; readonly digest: string }>;
const RELEASES: readonly { version: string; token: string; kinds: Contents }[] = [
  { version: '0.1.0', token: embedded.tokens.platform, kinds: embedded.kinds },
  { version: '0.2.0', token: expected020.token, kinds: expected020.kinds },
];

const random = new Random(SEED);
const KILLS_PER_RELEASE = sized(3, 25);
/** Of a start: the program is loaded, then it listens and converts the store. */
const [MIN_DELAY_MS, DELAY_RANGE_MS] = [150, 1_500];

/** Opens a directory of the release, at first with a server that is killed, and compares its content with what was sent. */
async function upgrade({ version, token, kinds }: (typeof RELEASES)[number], killAfterMs: number) {
  const directory = createTempDirectory();
  try {
    execFileSync('tar', ['-xzf', join(UPGRADE, `embedded-${version}.tar.gz`), '-C', directory.path]);
    const args = ['--retention-days', '36500', '--endpoints', join(UPGRADE, 'endpoints')];
    const { code } = await spawnDendro(['serve', '--data', directory.path, ...args], { killAfterMs });
    expect(code).toBeNull(); // killed
    const server = await serve(directory.path, args);
    try {
      const url = `${server.url}/api/endpoints/query/upgrade.contents?project=any`;
      const { rows } = await fetchResponse(url, { headers: { 'X-API-KEY': token } });
      const found: Contents = Object.fromEntries(rows.map(({ kind, ...contents }) => [kind, contents]));
      return { ...difference(found, kinds), isUnchanged: isDeepStrictEqual(found, kinds) };
    } finally {
      await kill(server);
    }
  } finally {
    directory.remove();
  }
}

function difference(found: Contents, expected: Contents) {
  let [lost, duplicated] = [0, 0];
  for (const [kind, { count }] of Object.entries(expected)) {
    const change = (found[kind]?.count ?? 0) - count;
    if (change < 0) lost -= change;
    else duplicated += change;
  }
  return { lost, duplicated };
}

test.each(RELEASES)(
  'a data directory of release $version whose upgrade is killed has every record',
  async release => {
    for (let run = 0; run < KILLS_PER_RELEASE; run++) {
      const { isUnchanged, ...counts } = await upgrade(
        release,
        MIN_DELAY_MS + random.next() * DELAY_RANGE_MS,
      );
      const outcome = `the next start finishes the upgrade, every record is ${isUnchanged ? 'unchanged' : 'CHANGED'}`;
      reportFault({ fault: 'kill -9 during an upgrade', runs: 1, outcome, ...counts });
      expect(isUnchanged).toBe(true);
    }
  },
);

const RECORDS = 400_000;

/** An old store whose conversion takes seconds. */
const writeLargeStore = (directory: string, records = RECORDS) =>
  changeOldStore(directory, [
    ...SCHEMA_4,
    `create table edge_part_1 (${EDGE_COLUMNS})`,
    `insert into edge_part_1 ${edgeRecords(0, records)}`,
    `insert into flushed_records values ('edge', ${records})`,
  ]);

describe('a server that converts its store', () => {
  const directory = createTempDirectory();
  const args = ['--retention-days', '36500', '--log-format', 'text'];
  const headers = { 'X-API-KEY': PROCESS_API_KEY };

  afterEach(() => directory.remove());

  test('is alive and answers 503 meanwhile; SIGTERM stops it, and the next start converts every record', async () => {
    const records = 1_000_000; // the conversion must still run when the server gets SIGTERM
    await writeLargeStore(directory.path, records);
    const [port, internalPort] = [await findFreePort(), await findFreePort()];
    const url = `http://127.0.0.1:${port}`;
    const ports = ['--port', String(port), '--internal-port', String(internalPort)];
    const stopped = spawnDendro(['serve', '--data', directory.path, ...ports, ...args], {
      env: { DENDRO_API_KEY: PROCESS_API_KEY },
      signalAfter: async () => {
        await expect.poll(() => readdirSync(directory.path)).toContain('converting');
        // At the same time, so that the conversion still runs afterwards.
        const responses = await Promise.all([
          fetchResponse(`${url}/health/live`, {}),
          fetchResponse(`${url}/health/ready`, {}),
          fetchResponse(`${url}/api/endpoints/query/logs.all?project=p0`, { headers }),
          sendLogs(`http://127.0.0.1:${internalPort}`, [{ project: 'p', message: 'm' }], {
            token: PROCESS_API_KEY,
          }),
        ]);
        expect(responses.map(({ status }) => status)).toEqual([200, 503, 503, 503]);
        return 'SIGTERM';
      },
    });
    const { stderr } = await stopped;
    expect(stderr).toContain('received SIGTERM');
    expect(stderr).not.toContain('converted the store');
    const server = await serve(directory.path, args);
    expect(server.stderr()).toContain(`converted the store of an earlier release: ${records} records`);
    await kill(server);
  });
});

describe('a full disk', () => {
  const MIB = 1024 * 1024;
  let disk: SmallDisk | undefined;

  afterEach(() => disk?.remove());

  function mount({ skip }: TestContext): SmallDisk {
    disk = mountSmallDisk(400);
    return disk ?? skip('A FULL DISK IS NOT TESTED HERE: mounting a small file system needs Linux and root');
  }
  const digest = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(path, 'dendro.duckdb')))
      .digest('hex');
  const open = (path: string, observe: (event: Event) => void = () => {}) =>
    openStore(testStoreOptions(path), { observe });
  const expectRefused = async (opening: Promise<unknown>) => {
    const error = await opening.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as Error).message).toMatch(/cannot convert the store .* Nothing was changed$/);
    return (error as Error).message;
  };
  const expectConverted = async (path: string) => {
    const store = await open(path);
    const sql = 'select count(*), count(distinct id) from edge_logs';
    const { rows } = await store.query(savedQuery(sql, ['integer', 'integer']), {});
    await store.close();
    expect(rows).toEqual([[RECORDS, RECORDS]]);
  };

  test('without space for both stores, the conversion does not begin', {
    timeout: 120_000,
  }, async context => {
    const { path, fill, free } = mount(context);
    await writeLargeStore(path);
    const before = digest(path);
    fill(70 * MIB);
    expect(await expectRefused(open(path))).toMatch(
      /not enough disk space: \d+ bytes are free, \d+ bytes are needed/,
    );
    expect(digest(path)).toBe(before);
    free();
    await expectConverted(path);
  });

  test('if the disk becomes full meanwhile, nothing changes, and a later start converts every record', {
    timeout: 120_000,
  }, async context => {
    const { path, fill, free } = mount(context);
    await writeLargeStore(path);
    const before = digest(path);
    const fillOnProgress = ({ type }: Event) => {
      if (type === 'conversion_progress') fill(MIB);
    };
    await expectRefused(open(path, fillOnProgress));
    expect(digest(path)).toBe(before);
    expect(readdirSync(path)).not.toContain('converting');
    free();
    await expectConverted(path);
  });
});
