import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bufferFile, readTar, type TarFile, writeTar } from '../../src/system/tar.ts';

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

async function* inChunks(data: Buffer, bytes: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < data.length; start += bytes) yield data.subarray(start, start + bytes);
}

const FILES = [
  bufferFile('empty', ''),
  bufferFile('spool/one.spool', 'x'.repeat(511)),
  bufferFile('spool/full-block', 'y'.repeat(1024)),
  bufferFile('text', 'sch\u00f6n'),
];
const archive = () => collect(writeTar(FILES, 1_700_000_000));

describe('tar', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dendro-tar-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test.each([1, 100, 512, 100_000])('reads what it wrote, in chunks of %i bytes', async bytes => {
    const found: [string, string][] = [];
    for await (const file of readTar(inChunks(await archive(), bytes)))
      found.push([file.path, (await collect(file.content())).toString()]);
    const expected = await Promise.all(
      FILES.map(async file => [file.path, (await collect(file.content())).toString()]),
    );
    expect(found).toEqual(expected);
  });

  test('the tar program reads what this module writes, and the other way round', async () => {
    writeFileSync(join(directory, 'ours.tar'), await archive());
    execFileSync('tar', ['-xf', 'ours.tar'], { cwd: directory });
    expect(readFileSync(join(directory, 'spool/one.spool'), 'utf8')).toBe('x'.repeat(511));
    execFileSync('tar', ['--format=ustar', '-cf', 'theirs.tar', 'text', 'spool/full-block'], {
      cwd: directory,
    });
    const paths: string[] = [];
    for await (const file of readTar(inChunks(readFileSync(join(directory, 'theirs.tar')), 1000))) {
      paths.push(file.path);
      await collect(file.content());
    }
    expect(paths).toEqual(['text', 'spool/full-block']);
  });

  test('a file of 8 GiB or more has its exact size', async () => {
    const bytes = 0o77777777777 + 12_345;
    const large: TarFile = { path: 'large', bytes, content: () => inChunks(Buffer.alloc(0), 1) };
    const { value: header } = await writeTar([large], 0).next();
    const { value: file } = await readTar(inChunks(header as Buffer, 512)).next();
    expect(file).toMatchObject({ path: 'large', bytes });
    writeFileSync(join(directory, 'large.tar'), header as Buffer);
    const listed = execFileSync('sh', ['-c', 'tar -tvf large.tar 2>/dev/null || true'], { cwd: directory });
    expect(listed.toString()).toContain(String(bytes));
  });

  test('an archive that is truncated anywhere is refused', async () => {
    const whole = await archive();
    for (let length = 0; length < whole.length; length += 256) {
      const read = async () => {
        for await (const file of readTar(inChunks(whole.subarray(0, length), 512)))
          await collect(file.content());
      };
      await expect(read(), `${length} bytes`).rejects.toThrow('truncated');
    }
  });

  test('a damaged header is refused', async () => {
    const damaged = await archive();
    damaged[3] = 0x41;
    await expect(readTar(inChunks(damaged, 512)).next()).rejects.toThrow('wrong checksum');
  });

  test('a file whose content is shorter or longer than its size fails', async () => {
    const withSize = (bytes: number): TarFile => ({ ...bufferFile('file', 'ten bytes.'), bytes });
    await expect(collect(writeTar([withSize(11)], 0))).rejects.toThrow('has 10 bytes instead of 11');
    await expect(collect(writeTar([withSize(9)], 0))).rejects.toThrow('has 10 bytes instead of 9');
  });

  test('links and directories in an archive are refused', async () => {
    execFileSync(
      'sh',
      ['-c', 'ln -s /etc/passwd link && mkdir sub && tar -cf link.tar link && tar -cf sub.tar sub'],
      {
        cwd: directory,
      },
    );
    for (const name of ['link.tar', 'sub.tar'])
      await expect(readTar(inChunks(readFileSync(join(directory, name)), 512)).next()).rejects.toThrow(
        'not a regular file',
      );
  });
});
