import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { inspectStore } from '../../src/store/open-store.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';

let embedded: EmbeddedStore;
let manifest: string;
let previous: string;
beforeEach(async () => {
  embedded = await EmbeddedStore.open();
  manifest = embedded.pathOf('manifest.json');
  previous = embedded.pathOf('manifest.previous.json');
});
afterEach(() => embedded.remove());

/** The changed manifest has the right checksum. */
const change = (edit: (content: Record<string, unknown>) => void) => () => {
  const { sha256: _, ...content } = JSON.parse(readFileSync(manifest, 'utf8'));
  edit(content);
  const sha256 = createHash('sha256').update(JSON.stringify(content)).digest('hex');
  writeFileSync(manifest, JSON.stringify({ sha256, ...content }));
};
const changeByte = () =>
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"records": 2', '"records": 3'));
const partFile = (number: number) => `edge-00000${number}.duckdb`;

describe('a manifest that cannot be used', () => {
  test.each<[state: string, damage: () => void, problem: RegExp]>([
    [
      'missing',
      () => rmSync(manifest),
      /manifest\.json does not exist, although a server has used this data directory/,
    ],
    ['empty', () => truncateSync(manifest), /cannot read \S+manifest\.json: Unexpected end of JSON input/],
    ['truncated', () => truncateSync(manifest, 100), /cannot read \S+manifest\.json: .*JSON/],
    ['not JSON', () => writeFileSync(manifest, 'parts'), /cannot read \S+manifest\.json: .*JSON/],
    ['null', () => writeFileSync(manifest, 'null'), /cannot read \S+manifest\.json: /],
    ['changed in one byte', changeByte, /manifest\.json: its content differs from what was written/],
    [
      'without a list of parts',
      change(content => delete content['parts']),
      /cannot read \S+manifest\.json: parts: /,
    ],
    [
      'with a wrong type',
      change(content => Object.assign(content, { storedUpTo: { edge: '7' } })),
      /cannot read \S+manifest\.json: storedUpTo\.edge: /,
    ],
    [
      'with a part outside parts/',
      change(content => Object.assign((content['parts'] as object[])[0] ?? {}, { file: '../edge-1.duckdb' })),
      /cannot read \S+manifest\.json: parts\.0\.file: /,
    ],
  ])(
    'a start with a manifest that is %s fails, says what to do and changes nothing',
    async (_, damage, problem) => {
      await embedded.flush(embedded.createRecords(2));
      await embedded.flush(embedded.createRecords(2));
      await embedded.close();
      damage();
      writeFileSync(embedded.partPath('edge-000009.duckdb'), 'not named');
      const before = embedded.readFiles();
      const error = await embedded.reopen().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OperatorError);
      const { message } = error as OperatorError;
      expect(message).toMatch(problem);
      expect(message).toContain(
        `nothing was changed. To continue, restore a backup, or copy ${previous} to ${manifest}: it may lack the newest records`,
      );
      expect(message).not.toContain('\n');
      expect(embedded.readFiles()).toEqual(before);
    },
  );

  test('the error does not name a previous manifest that does not exist', async () => {
    await embedded.close();
    writeFileSync(manifest, '{');
    rmSync(previous, { force: true });
    await expect(embedded.reopen()).rejects.toThrow(/nothing was changed\. To continue, restore a backup$/);
  });

  test('`check` reports it with the same error', async () => {
    await embedded.close();
    writeFileSync(manifest, '{');
    const { error } = await inspectStore('duckdb', { dataDirectory: embedded.dataDirectory });
    expect(error).toBeInstanceOf(OperatorError);
  });
});

describe('a restored manifest', () => {
  const copy = () => copyFileSync(previous, manifest);
  const rename = () => renameSync(previous, manifest);

  test.each([
    ['copied', 1, copy],
    ['renamed', 1, rename],
    ['copied', 5, copy],
    ['renamed', 5, rename],
  ])(
    'if the previous manifest is %s after %i flushes, the part that it does not name is kept and reported',
    async (_, flushes, restore) => {
      for (let i = 0; i < flushes; i++) await embedded.flush(embedded.createRecords(1));
      await embedded.close();
      const last = partFile(flushes);
      const content = readFileSync(embedded.partPath(last));
      restore();
      await embedded.reopen();
      const path = embedded.partPath(`${last}.unnamed`);
      expect(embedded.eventsOf('unnamed_part')).toEqual([{ type: 'unnamed_part', path }]);
      expect(existsSync(embedded.partPath(last))).toBe(false);
      expect(readFileSync(path).equals(content)).toBe(true);
      expect(await embedded.ids()).toHaveLength(flushes - 1);
    },
  );

  test('a part with the number of an unnamed part is never written, even after another start', async () => {
    for (let i = 0; i < 3; i++) await embedded.flush(embedded.createRecords(1));
    await embedded.close();
    copy();
    await embedded.reopen();
    await embedded.reopen();
    await embedded.flush(embedded.createRecords(1));
    expect(embedded.files).toEqual([partFile(1), partFile(2), `${partFile(3)}.unnamed`, partFile(4)]);
  });

  test('an unnamed part becomes readable again with the manifest that names it', async () => {
    for (let i = 0; i < 3; i++) await embedded.flush(embedded.createRecords(1));
    await embedded.close();
    const newest = readFileSync(manifest);
    copy();
    await embedded.reopen();
    await embedded.close();
    writeFileSync(manifest, newest);
    renameSync(embedded.partPath(`${partFile(3)}.unnamed`), embedded.partPath(partFile(3)));
    await embedded.reopen();
    expect(await embedded.ids()).toEqual(['n0', 'n1', 'n2']);
  });
});

describe('files in parts/ that the manifest does not name', () => {
  test('a start deletes them even if several processes were killed before they wrote the previous manifest', async () => {
    await embedded.flush(embedded.createRecords(1));
    const older = readFileSync(previous);
    for (let i = 0; i < 4; i++) await embedded.flush(embedded.createRecords(1));
    const kept = embedded.files;
    await embedded.close();
    writeFileSync(previous, older);
    writeFileSync(embedded.partPath(partFile(9)), 'left by a killed process');
    await embedded.reopen();
    expect(embedded.files).toEqual(kept);
    expect(embedded.eventsOf('unnamed_part')).toEqual([]);
  });

  test('a start deletes what a killed process left, and keeps and reports foreign files', async () => {
    await embedded.flush(embedded.createRecords(2));
    await embedded.flush(embedded.createRecords(2));
    const kept = embedded.files;
    await embedded.close();
    for (const name of [partFile(7), `${partFile(8)}.tmp`, `${partFile(8)}.tmp.wal`])
      writeFileSync(embedded.partPath(name), 'left by a killed process');
    const foreign = ['edge-000001.duckdb.wal', 'edge-7.duckdb', 'notes.txt'];
    for (const name of foreign) writeFileSync(embedded.partPath(name), name);
    await embedded.reopen();
    expect(embedded.files).toEqual([...kept, ...foreign].sort());
    const reported = embedded.eventsOf('foreign_file').map(({ path }) => path);
    expect(reported.sort()).toEqual(foreign.map(name => embedded.partPath(name)).sort());
    expect(await embedded.ids()).toHaveLength(4);
    await embedded.flush(embedded.createRecords(1));
    expect(embedded.files).toContain(partFile(9)); // a number is not used twice
  });

  test('a new data directory gets a manifest without parts', async () => {
    expect(embedded.parts).toEqual([]);
    await embedded.reopen();
    expect(embedded.events).toEqual([]);
    expect(await embedded.ids()).toEqual([]);
  });
});
