// Converts stores as earlier releases wrote them. Directories that an earlier program wrote are tested in test/upgrade.
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import type { Event } from '../../src/observe/event.ts';
import { type Manifest, readManifest } from '../../src/store/duckdb/manifest.ts';
import { findPartProblem } from '../../src/store/duckdb/part-file.ts';
import { windowOf } from '../../src/store/duckdb/time-windows.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import {
  changeOldStore,
  damageTable,
  EDGE_COLUMNS,
  edgeRecords,
  rowsOfOldStore,
  SCHEMA_4,
} from '../support/old-store.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

const NOW = micros('2026-11-14T13:00:00Z');
/** Enough for tables with blocks of their own. */
const RECORDS = 20_000;

const directory = useDirectory();
let events: Event[];

beforeEach(() => {
  events = [];
});

const fileIn = (...names: string[]) => join(directory, ...names);
const edgeTable = (name: string, first: number, end: number) => [
  `create table ${name} (${EDGE_COLUMNS})`,
  `insert into ${name} ${edgeRecords(first, end)}`,
];
/** A store with three tables of edge records and flush progress. Most tests convert a copy of it. */
const original = createDataDirectory();
beforeAll(() =>
  changeOldStore(original, [
    ...SCHEMA_4,
    ...edgeTable('edge_compacted_1', 0, RECORDS),
    ...edgeTable('edge_part_2', RECORDS, 2 * RECORDS),
    ...edgeTable('edge_part_3', 2 * RECORDS, 2 * RECORDS + 10),
    `insert into flushed_records values ('edge', ${2 * RECORDS + 10})`,
  ]),
);
afterAll(() => removeDataDirectory(original));
const writeStore = () => cpSync(original, directory, { recursive: true });
const ALL = 2 * RECORDS + 10;

const open = (options: Partial<StoreOptions> = {}) =>
  openStore(
    { ...testStoreOptions(directory), clock: () => NOW, ...options },
    { observe: event => events.push(event) },
  );

/** Opens the store and reads the number of edge records, of their ids, and a checksum of what the old store had. */
async function readEdge(options: Partial<StoreOptions> = {}): Promise<readonly unknown[]> {
  const store = await open(options);
  try {
    const sql = `select count(*), count(distinct id), sum(hash(id, timestamp, project, event_message, metadata, url, path)::hugeint)::varchar from edge_logs`;
    return (await store.query(savedQuery(sql, ['integer', 'integer', 'text']), {})).rows[0] ?? [];
  } finally {
    await store.close();
  }
}

async function checksumOfOld(from: string): Promise<unknown> {
  const sql = `select sum(hash(id, timestamp, project, event_message, metadata, url, path)::hugeint)::varchar from (${from})`;
  return (await rowsOfOldStore(directory, sql))[0]?.[0];
}

function manifest(): Manifest {
  const found = readManifest(directory);
  if (found === undefined) throw new Error('there is no manifest');
  return found;
}

/** The names and digests of all files. */
function listFiles(of = directory): Record<string, string> {
  const names = readdirSync(of, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  return Object.fromEntries(
    names.map(entry => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(of.length), createHash('sha256').update(readFileSync(path)).digest('hex')];
    }),
  );
}

const oldFiles = () =>
  Object.fromEntries(Object.entries(listFiles()).filter(([name]) => !/format|pid/.test(name)));
const errorOf = async (opening: Promise<unknown>) => {
  const error: unknown = await opening.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OperatorError);
  return (error as Error).message;
};

describe('converting a store', () => {
  test('keeps every record and the flush progress', async () => {
    writeStore();
    const checksum = await checksumOfOld(edgeRecords(0, ALL));
    expect(await readEdge()).toEqual([ALL, ALL, checksum]);
    expect(manifest().storedUpTo).toEqual({ edge: ALL });
    expect(events.filter(({ type }) => /conver|old/.test(type))).toEqual([
      { type: 'conversion_progress', share: 0, records: ALL },
      ...events.filter(({ type }) => type === 'conversion_progress').slice(1),
      { type: 'converted', records: ALL },
    ]);
    expect(readdirSync(directory).filter(name => /duckdb|converting/.test(name))).toEqual(['dendro.duckdb']);
    expect(await readEdge()).toEqual([ALL, ALL, checksum]); // opens it again
  });

  test('writes sorted parts of one time window each, with the columns of searchable fields', async () => {
    writeStore();
    const store = await open();
    const sql = "select count(*) from edge_logs where field_method = 'GET' and field_status = '204'";
    expect((await store.query(savedQuery(sql, ['integer']), {})).rows).toEqual([[ALL / 5]]);
    await store.close();
    const { parts } = manifest();
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      expect(windowOf(part.since, NOW)).toEqual(windowOf(part.until, NOW));
      expect(part.runs).toBe(1);
      expect(await findPartProblem(fileIn('parts'), part)).toBeUndefined();
    }
  });

  test('a part has at most --max-disk / 20 bytes of text', async () => {
    writeStore();
    const maxPartBytes = 300_000;
    expect((await readEdge({ maxPartBytes }))[0]).toBe(ALL);
    for (const { textBytes } of manifest().parts) expect(textBytes).toBeLessThanOrEqual(maxPartBytes);
  });

  test('leaves out temporary tables of interrupted compactions, and converts tables of schema version 3', async () => {
    await changeOldStore(directory, [
      'create table schema_version (version integer not null)',
      'insert into schema_version values (3)',
      'create table sealed_records (kind varchar primary key, records bigint not null)',
      "insert into sealed_records values ('edge', 30)",
      ...edgeTable('edge_merged_1', 0, 20),
      ...edgeTable('edge_sealed_2', 20, 30),
      'create view edge_logs as from edge_merged_1 union all from edge_sealed_2',
      ...['merging', 'compacting', 'rewriting'].map(
        name => `create table edge_${name}_2 as from edge_merged_1`,
      ),
    ]);
    expect((await readEdge()).slice(0, 2)).toEqual([30, 30]);
    expect(manifest().storedUpTo).toEqual({ edge: 30 });
  });

  test('refuses a store with a newer schema version', async () => {
    writeStore();
    await changeOldStore(directory, ['update schema_version set version = 6']);
    const before = oldFiles();
    expect(await errorOf(open())).toMatch(
      /has schema version 6, but this version of Dendro can convert at most 4/,
    );
    expect(oldFiles()).toEqual(before);
  });
});

describe('an interrupted conversion', () => {
  /** Converts a copy, and returns its path. The store of `directory` is not converted. */
  async function convertCopy(): Promise<string> {
    const old = `${directory}-old`;
    cpSync(directory, old, { recursive: true });
    await (await open()).close();
    const converted = `${directory}-converted`;
    rmSync(converted, { recursive: true, force: true });
    renameSync(directory, converted);
    renameSync(old, directory);
    return converted;
  }

  test.each([
    ['while it wrote parts', () => {}],
    ['before converting/ was renamed', () => {}],
    ['before the manifest was moved', (converting: string) => renameSync(converting, fileIn('parts'))],
    [
      'before the marker was moved',
      (converting: string) => {
        renameSync(converting, fileIn('parts'));
        renameSync(fileIn('parts', 'manifest.json'), fileIn('manifest.json'));
      },
    ],
    [
      'before the write-ahead log was deleted',
      (converting: string) => {
        renameSync(converting, fileIn('parts'));
        for (const name of ['manifest.json', 'dendro.duckdb'])
          renameSync(fileIn('parts', name), fileIn(name));
      },
    ],
  ])('%s continues with every record', async (when, interrupt) => {
    writeStore();
    await changeOldStore(directory, ["insert into flushed_records values ('auth', 5)"], { isKilled: true });
    const converted = await convertCopy();
    const converting = fileIn('converting');
    cpSync(join(converted, 'parts'), converting, { recursive: true });
    const [firstPart = ''] = readdirSync(converting);
    if (when === 'while it wrote parts') writeFileSync(join(converting, firstPart), 'half of a part');
    else
      for (const name of ['manifest.json', 'dendro.duckdb'])
        copyFileSync(join(converted, name), join(converting, name));
    interrupt(converting);
    expect((await readEdge()).slice(0, 2)).toEqual([ALL, ALL]);
    expect(manifest().storedUpTo).toEqual({ edge: ALL, auth: 5 });
    const without = (files: Record<string, string>) =>
      Object.keys(files).filter(name => !/manifest.copy|format/.test(name));
    expect(without(listFiles())).toEqual(without(listFiles(converted)));
    rmSync(converted, { recursive: true });
  });

  test('a manifest that a power cut left in parts/ does not replace the newer one', async () => {
    writeStore();
    await (await open()).close();
    const old = readFileSync(fileIn('manifest.json'));
    const store = await open();
    await store.eraseProject({ project: 'p1', beforeMicros: undefined });
    await store.close();
    const newer = manifest();
    writeFileSync(fileIn('parts', 'manifest.json'), old);
    await (await open()).close();
    expect(manifest()).toEqual(newer);
    expect(existsSync(fileIn('parts', 'manifest.json'))).toBe(false);
  });

  test('a conversion that fails changes nothing, and leaves no file', async () => {
    writeStore();
    const before = oldFiles();
    mkdirSync(fileIn('parts'));
    writeFileSync(fileIn('parts', 'foreign'), '');
    expect(await errorOf(open())).toMatch(/parts\/foreign is in the way.*Nothing was changed/);
    expect(oldFiles()).toEqual({ ...before, '/parts/foreign': expect.any(String) });
    rmSync(fileIn('parts', 'foreign'));
    expect((await readEdge())[0]).toBe(ALL);
  });
});

describe('a store that a crash has damaged', () => {
  test('commits of the write-ahead log are converted, and an unfinished write at its end is kept and reported', async () => {
    writeStore();
    await changeOldStore(directory, ["insert into flushed_records values ('auth', 7)"], { isKilled: true });
    const log = fileIn('dendro.duckdb.wal');
    appendFileSync(log, Buffer.alloc(4096));
    expect((await readEdge())[0]).toBe(ALL);
    expect(manifest().storedUpTo).toEqual({ edge: ALL, auth: 7 });
    expect(events[0]).toEqual({
      type: 'old_log_truncated',
      path: log,
      invalidBytes: 4096,
      copy: `${log}.damaged`,
    });
    expect(readFileSync(`${log}.damaged`)).toEqual(Buffer.alloc(4096));
    expect(existsSync(log)).toBe(false);
  });

  test('a file that DuckDB cannot open is named, and stays as it is', async () => {
    writeStore();
    writeFileSync(fileIn('dendro.duckdb'), Buffer.alloc(50_000, 1));
    const before = oldFiles();
    expect(await errorOf(open())).toMatch(
      /cannot read the store of an earlier release: .*start and stop it once.*restore the data directory/,
    );
    expect(oldFiles()).toEqual(before);
  });
});

describe('a table that cannot be read', () => {
  beforeEach(async () => {
    writeStore();
    await damageTable(directory, 'edge_part_2');
  });

  test('stops the conversion, which names the table and its records and changes nothing', async () => {
    const before = oldFiles();
    const message = await errorOf(open());
    expect(message).toMatch(
      new RegExp(`edge_part_2 cannot be read \\(${RECORDS} records\\): .*--accept-loss`),
    );
    expect(message).not.toMatch(/edge_compacted_1|edge_part_3/);
    expect(oldFiles()).toEqual(before);
  });

  test('is left out with --accept-loss, and reported', async () => {
    expect((await readEdge({ acceptLoss: true })).slice(0, 2)).toEqual([RECORDS + 10, RECORDS + 10]);
    expect(events.find(({ type }) => type === 'old_table_lost')).toEqual({
      type: 'old_table_lost',
      table: 'edge_part_2',
      records: RECORDS,
      problem: expect.any(String),
    });
    expect(manifest().storedUpTo).toEqual({ edge: ALL });
  });
});

describe('the marker', () => {
  test('a new data directory gets a file that earlier releases refuse', async () => {
    await (await open()).close();
    expect(await rowsOfOldStore(directory, 'select max(version) from schema_version')).toEqual([[5]]);
    await (await open()).close();
    expect(events).toEqual([]);
  });

  test('it is added again if it is missing', async () => {
    await (await open()).close();
    rmSync(fileIn('dendro.duckdb'));
    await (await open()).close();
    expect(await rowsOfOldStore(directory, 'select max(version) from schema_version')).toEqual([[5]]);
  });

  test('with the marker and without a manifest, the store is refused', async () => {
    await (await open()).close();
    rmSync(fileIn('manifest.json'));
    expect(await errorOf(open())).toMatch(
      /manifest\.json does not exist, although a server has used this data directory/,
    );
    expect(existsSync(fileIn('manifest.json'))).toBe(false);
  });
});
