import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { inspectStore } from '../../src/store/open-store.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';
import { batches } from '../support/store.ts';

let embedded: EmbeddedStore;
let manifest: string;
let copy: string;
beforeEach(async () => {
  embedded = await EmbeddedStore.open();
  manifest = embedded.pathOf('manifest.json');
  copy = embedded.pathOf('manifest.copy.json');
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
        `nothing was changed. To continue, copy ${copy} to ${manifest} (it may lack the last change), or restore a backup`,
      );
      expect(message).not.toContain('\n');
      expect(embedded.readFiles()).toEqual(before);
      copyFileSync(copy, manifest);
      await embedded.reopen();
      expect(await embedded.ids()).toHaveLength(4);
    },
  );

  test('the error does not name a copy that does not exist', async () => {
    await embedded.close();
    writeFileSync(manifest, '{');
    rmSync(copy, { force: true });
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
  /** Restores both manifests from before the last changes. Returns those of after the changes. */
  const restoreFrom = async (changes: () => Promise<unknown>) => {
    const files = [manifest, copy];
    const older = files.map(file => readFileSync(file));
    await changes();
    await embedded.close();
    const newer = files.map(file => readFileSync(file));
    for (const [i, file] of files.entries()) writeFileSync(file, older[i] ?? '');
    return newer;
  };
  const flush = () => embedded.flush(embedded.createRecords(1));

  test.each<[change: string, apply: () => Promise<unknown>, unnamed: readonly number[], missing: number]>([
    ['two flushes', () => flush().then(flush), [4, 5], 0],
    ['an append', () => embedded.store.append(batches('edge', embedded.createRecords(1))), [4], 0],
    ['an erasure', () => embedded.store.eraseProject({ project: 'p0' }), [4], 2],
  ])(
    'that is older than %s: all parts that it does not name are kept and reported',
    async (_, apply, unnamed, missing) => {
      await flush(); // n0 of p0
      await embedded.flush(embedded.createRecords(3)); // n1 of p1, n2 of p2, n3 of p0
      await flush(); // n4 of p1
      const before = embedded.files;
      let contents: [path: string, content: Buffer][] = [];
      await restoreFrom(async () => {
        await apply();
        const added = embedded.files.filter(name => !before.includes(name));
        contents = added.map(name => [
          embedded.partPath(`${name}.unnamed`),
          readFileSync(embedded.partPath(name)),
        ]);
      });
      expect(contents.map(([path]) => path)).toEqual(
        unnamed.map(number => embedded.partPath(`${partFile(number)}.unnamed`)),
      );
      await embedded.reopen();
      expect(embedded.eventsOf('unnamed_part').map(({ path }) => path)).toEqual(
        contents.map(([path]) => path),
      );
      for (const [path, content] of contents) expect(readFileSync(path).equals(content)).toBe(true);
      expect(embedded.manifest.setAside).toHaveLength(missing);
      await embedded.reopen();
      expect(embedded.eventsOf('unnamed_part')).toEqual([]);
    },
  );

  test('a part with the number of an unnamed part is never written, even after another start', async () => {
    await flush();
    await restoreFrom(flush);
    await embedded.reopen();
    await embedded.reopen();
    await flush();
    expect(embedded.files).toEqual([partFile(1), `${partFile(2)}.unnamed`, partFile(3)]);
  });

  test('an unnamed part becomes readable again with the manifest that names it', async () => {
    await flush();
    const [newest = ''] = await restoreFrom(flush);
    await embedded.reopen();
    await embedded.close();
    writeFileSync(manifest, newest);
    renameSync(embedded.partPath(`${partFile(2)}.unnamed`), embedded.partPath(partFile(2)));
    await embedded.reopen();
    expect(await embedded.ids()).toEqual(['n0', 'n1']);
  });
});

describe('files in parts/ that the manifest does not name', () => {
  test('a start deletes what a killed process left, and keeps and reports foreign files', async () => {
    await embedded.flush(embedded.createRecords(2));
    await embedded.flush(embedded.createRecords(2));
    const kept = embedded.files;
    await embedded.close();
    for (const name of [`${partFile(8)}.tmp`, `${partFile(8)}.tmp.wal`])
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

  test('a start deletes the parts that an erasure replaced before the process was killed', async () => {
    await embedded.flush(embedded.createRecords(3));
    const erased = readFileSync(embedded.partPath(partFile(1)));
    await embedded.store.eraseProject({ project: 'p0' });
    await embedded.close();
    writeFileSync(embedded.partPath(partFile(1)), erased);
    await embedded.reopen();
    expect(embedded.files).toEqual([partFile(2)]);
    expect(embedded.events).toEqual([]);
    expect(await embedded.ids()).toEqual(['n1', 'n2']);
  });

  test('a start keeps a removed part if the part that replaced it is damaged', async () => {
    await embedded.flush(embedded.createRecords(3));
    const original = readFileSync(embedded.partPath(partFile(1)));
    await embedded.store.eraseProject({ project: 'p0' });
    await embedded.close();
    writeFileSync(embedded.partPath(partFile(1)), original);
    truncateSync(embedded.partPath(partFile(2)), 100);
    await embedded.reopen();
    expect(embedded.files).toEqual([`${partFile(1)}.unnamed`, `${partFile(2)}.damaged`]);
  });

  test('a start gives a part its name if the process was killed after the manifest named it', async () => {
    await embedded.flush(embedded.createRecords(3));
    await embedded.close();
    renameSync(embedded.partPath(partFile(1)), embedded.partPath(`${partFile(1)}.tmp`));
    expect(await inspectStore('duckdb', { dataDirectory: embedded.dataDirectory })).toMatchObject({
      damages: [],
    });
    await embedded.reopen();
    expect(embedded.files).toEqual([partFile(1)]);
    expect(embedded.events).toEqual([]);
    expect(await embedded.ids()).toHaveLength(3);
  });

  test('a new data directory gets a manifest without parts', async () => {
    expect(embedded.parts).toEqual([]);
    await embedded.reopen();
    expect(embedded.events).toEqual([]);
    expect(await embedded.ids()).toEqual([]);
  });
});
