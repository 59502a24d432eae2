import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addEarlierParts, readEarlierParts } from '../../src/backup/earlier-parts.ts';
import { replaceBackup } from '../../src/backup/replace-backup.ts';
import { emptyManifest, formatManifest, type Manifest } from '../../src/store/duckdb/manifest.ts';
import { hashFile } from '../../src/system/open-file.ts';
import { createTempDirectory } from '../support/process.ts';

let temporary: ReturnType<typeof createTempDirectory>;
beforeEach(() => {
  temporary = createTempDirectory();
});
afterEach(() => temporary.remove());

const pathOf = (name: string) => join(temporary.path, name);
const write = (name: string, content: string) => {
  mkdirSync(join(pathOf(name), '..'), { recursive: true });
  writeFileSync(pathOf(name), content);
};

describe('replacing a backup', () => {
  const restored: string[] = [];
  beforeEach(() => restored.splice(0));

  const replace = (content: string, directory = pathOf('backup')) =>
    replaceBackup(
      directory,
      async incomplete => {
        writeFileSync(join(incomplete, 'backup.json'), content);
        return content;
      },
      previous => restored.push(previous),
    );
  const reportOf = (name = 'backup') => readFileSync(pathOf(`${name}/backup.json`), 'utf8');

  test('creates missing directories, and leaves nothing beside the backup', async () => {
    expect(await replace('one', pathOf('a/b/backup'))).toBe('one');
    expect(reportOf('a/b/backup')).toBe('one');
    expect(statSync(pathOf('a/b/backup')).mode & 0o777).toBe(0o700);
    await replace('two', pathOf('a/b/backup'));
    expect(reportOf('a/b/backup')).toBe('two');
    expect(readdirSync(pathOf('a/b'))).toEqual(['backup']);
  });

  test('keeps the earlier backup if the new one fails', async () => {
    await replace('one');
    const failing = replaceBackup(
      pathOf('backup'),
      async incomplete => {
        writeFileSync(join(incomplete, 'backup.json'), 'two');
        throw new Error('connection lost');
      },
      () => {},
    );
    await expect(failing).rejects.toThrow('connection lost');
    expect(reportOf()).toBe('one');
    expect(readdirSync(temporary.path)).toEqual(['backup']);
  });

  test('deletes what a killed run has left', async () => {
    write('backup/backup.json', 'one');
    write('backup.incomplete/parts/edge-000001.duckdb', 'unfinished');
    await replace('two');
    expect(readdirSync(pathOf('backup'))).toEqual(['backup.json']);
    expect(readdirSync(temporary.path)).toEqual(['backup']);
  });

  test('gives the previous backup its name back if a run was killed between its renames', async () => {
    write('backup.previous/backup.json', 'one');
    write('backup.incomplete/backup.json', 'two');
    let seen = '';
    await replaceBackup(
      pathOf('backup'),
      async incomplete => {
        seen = reportOf();
        writeFileSync(join(incomplete, 'backup.json'), 'three');
      },
      previous => restored.push(previous),
    );
    expect([seen, reportOf()]).toEqual(['one', 'three']);
    expect(restored).toEqual([pathOf('backup.previous')]);
    expect(readdirSync(temporary.path)).toEqual(['backup']);
  });

  test('does not delete a directory with the name of the previous backup that somebody has created', async () => {
    await replace('one');
    write('backup.previous/mine', 'content');
    await expect(replace('two')).rejects.toThrow('backup.previous exists, but a backup needs this name');
    expect(reportOf()).toBe('one');
    expect(existsSync(pathOf('backup.previous/mine'))).toBe(true);
  });

  test.each([
    ['a file', () => write('backup', 'content'), 'neither an empty directory nor a backup'],
    ['another directory', () => write('backup/mine', 'content'), 'neither an empty directory nor a backup'],
    [
      'a backup that a server has used',
      () => {
        write('backup/backup.json', '{}');
        mkdirSync(pathOf('backup/staging'));
      },
      'backup has staging, which is not part of a backup',
    ],
  ])('does not replace %s', async (_, create, message) => {
    create();
    const before = readdirSync(temporary.path, { recursive: true });
    await expect(replace('new')).rejects.toThrow(message);
    expect(readdirSync(temporary.path, { recursive: true })).toEqual(before);
  });

  test('does not replace a backup that a server has begun to use meanwhile', async () => {
    await replace('one');
    const replacing = replaceBackup(
      pathOf('backup'),
      async () => writeFileSync(pathOf('backup/dendro.pid'), '1'),
      () => {},
    );
    await expect(replacing).rejects.toThrow('backup has dendro.pid');
    expect(reportOf()).toBe('one');
  });
});

describe('the parts of an earlier backup', () => {
  const writeManifest = async (partNames: readonly string[]): Promise<Manifest> => {
    const parts = await Promise.all(
      partNames.map(async file => ({
        ...{ file, kind: 'edge' as const, records: 1, runs: 1, since: 0n, until: 0n },
        ...{ textBytes: 1, largeTextBytes: 0, ...(await hashFile(pathOf(`old/parts/${file}`))) },
      })),
    );
    const manifest = { ...emptyManifest(), parts };
    write('new/manifest.json', formatManifest(manifest));
    return manifest;
  };
  const [one, two] = ['edge-000001.duckdb', 'edge-000002.duckdb'] as const;
  beforeEach(() => {
    write(`old/parts/${one}`, 'one');
    write(`old/parts/${two}`, 'two');
  });

  test('are linked if the manifest of the copy names them', async () => {
    await writeManifest([two]);
    const read: number[] = [];
    const earlier = await readEarlierParts(pathOf('old'), bytes => read.push(bytes));
    expect(read).toEqual([3, 6]);
    expect(await addEarlierParts(pathOf('new'), earlier)).toEqual([]);
    expect(readdirSync(pathOf('new/parts'))).toEqual([two]);
    expect(statSync(pathOf(`new/parts/${two}`)).ino).toBe(statSync(pathOf(`old/parts/${two}`)).ino);
  });

  test('are not used if they are damaged', async () => {
    await writeManifest([one, two]);
    writeFileSync(pathOf(`old/parts/${one}`), 'One');
    await addEarlierParts(pathOf('new'), await readEarlierParts(pathOf('old'), () => {}));
    expect(readdirSync(pathOf('new/parts'))).toEqual([two]);
  });

  test('are also kept if the store has set them aside, because the backup may have the only sound copy', async () => {
    const { parts, ...manifest } = await writeManifest([one, two]);
    const setAside = parts.map(part => ({ ...part, reason: 'damaged' as const }));
    write('new/manifest.json', formatManifest({ ...manifest, parts: [], setAside }));
    rmSync(pathOf(`old/parts/${two}`));
    const earlier = await readEarlierParts(pathOf('old'), () => {});
    expect(await addEarlierParts(pathOf('new'), earlier)).toEqual([`parts/${two}`]);
    expect(readdirSync(pathOf('new/parts'))).toEqual([one]);
  });

  // Hard links do not work between two file systems.
  const shared = '/dev/shm';
  const isOtherFileSystem =
    existsSync(shared) && statSync(shared).dev !== statSync(process.env['TMPDIR'] ?? '/tmp').dev;
  test.runIf(isOtherFileSystem)('are copied if they cannot be linked', async () => {
    await writeManifest([one]);
    const elsewhere = join(shared, `dendro-part-${process.pid}`);
    writeFileSync(elsewhere, 'one');
    try {
      const { sha256 } = await hashFile(elsewhere);
      await addEarlierParts(pathOf('new'), new Map([[sha256, elsewhere]]));
      expect(readFileSync(pathOf(`new/parts/${one}`), 'utf8')).toBe('one');
    } finally {
      rmSync(elsewhere);
    }
  });
});
