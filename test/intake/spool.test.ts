import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { CompletedRequest } from '../../src/intake/idempotency-index.ts';
import { Spool } from '../../src/intake/spool.ts';
import type { Event } from '../../src/observe/event.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';

const MIB = 1024 * 1024;

let root: string;
let folder: string;
let events: Event[];
let spool: Spool | undefined;
let known: readonly CompletedRequest[];

beforeEach(() => {
  root = makeDataFolder();
  folder = join(root, 'spool');
  events = [];
});
afterEach(async () => {
  await spool?.close();
  spool = undefined;
  removeDataFolder(root);
});

const nothingSettled = () => 0;
const openSpool = async (settled: (kind: LogKind) => number = nothingSettled): Promise<Spool> => {
  await spool?.close();
  const opened = await Spool.open(folder, settled, event => events.push(event));
  spool = opened.spool;
  known = opened.requests;
  return opened.spool;
};
const lines = (text: string, count = 1) => Buffer.from(`${text}\n`.repeat(count));
const file = (number: number) => join(folder, `${String(number).padStart(12, '0')}.spool`);
const files = () => readdirSync(folder).sort();
const request = (key: string, atMicros = 1): CompletedRequest => ({
  key,
  digest: 'd',
  atMicros,
  answer: { accepted: 1, rejected: 0, errors: [] },
});

/** All that can be read, as `kind first+count text`. */
const readAll = async (from: Spool): Promise<string[]> => {
  const all: string[] = [];
  while (from.unappliedBytes > 0) {
    const { blocks, done } = await from.read(MIB);
    if (blocks.length === 0) throw new Error('nothing to read, though there is said to be more');
    for (const { header, lines } of blocks)
      all.push(
        `${header.kind} ${header.first}+${header.count} ${Buffer.from(lines).toString().split('\n', 1)[0]}`,
      );
    done();
  }
  return all;
};

/** How often files were flushed while `work` ran. It counts the real calls. */
async function countFlushes(work: () => Promise<unknown>): Promise<number> {
  const handle = await open(join(root, 'any'), 'w');
  const prototype = Object.getPrototypeOf(handle) as { datasync(): Promise<void> };
  await handle.close();
  const { datasync } = prototype;
  let flushes = 0;
  prototype.datasync = function (this: unknown) {
    flushes++;
    return datasync.call(this);
  };
  try {
    await work();
    return flushes;
  } finally {
    prototype.datasync = datasync;
  }
}

describe('appending', () => {
  test('gives back what was appended, in order, numbered by kind', async () => {
    const first = await openSpool();
    await first.append('edge', 2, lines('a', 2));
    await first.append('auth', 1, lines('b'));
    await first.append('edge', 3, lines('c', 3));
    const all = ['edge 0+2 a', 'auth 0+1 b', 'edge 2+3 c'];
    expect(await readAll(first)).toEqual(all);
    expect(await readAll(await openSpool())).toEqual(all);
    await spool?.append('edge', 1, lines('d'));
    await spool?.append('auth', 1, lines('e'));
    expect(await readAll(await openSpool())).toEqual([...all, 'edge 5+1 d', 'auth 1+1 e']);
  });

  test('many at once are few flushes', async () => {
    const many = await openSpool();
    const flushes = await countFlushes(() =>
      Promise.all(Array.from({ length: 500 }, (_, i) => many.append('edge', 1, lines(String(i))))),
    );
    expect(flushes).toBeLessThanOrEqual(3);
    expect(await readAll(many)).toHaveLength(500);
  });

  test('one after another are a flush each: nothing is acknowledged before it is durable', async () => {
    const one = await openSpool();
    const flushes = await countFlushes(async () => {
      for (let i = 0; i < 20; i++) await one.append('edge', 1, lines(String(i)));
    });
    expect(flushes).toBe(20);
  });

  test('what is resolved is in the file', async () => {
    const one = await openSpool();
    await one.append('edge', 1, lines('durable'));
    expect(readFileSync(file(1), 'utf8')).toContain('durable');
  });

  test('a block larger than one reading comes whole', async () => {
    const large = await openSpool();
    await large.append('edge', 1, lines('x'.repeat(20 * MIB)));
    await large.append('edge', 1, lines('small'));
    const again = await openSpool();
    const { blocks } = await again.read(1000);
    expect(blocks.map(({ lines }) => lines.length)).toEqual([20 * MIB + 1]);
    expect(await readAll(again)).toHaveLength(2);
  });

  test('after it is closed nothing is taken and no file is made', async () => {
    const closed = await openSpool();
    await closed.append('edge', 1, lines('before'));
    await closed.close();
    rmSync(file(1));
    await expect(closed.append('edge', 1, lines('after'))).rejects.toThrow();
    expect(files()).toEqual([]);
  });
});

describe('segments', () => {
  const large = (text: string) => lines(text.padEnd(12 * MIB, '.'));
  const fill = async (to: Spool, kind: LogKind = 'edge') => {
    for (const part of ['1', '2', '3'])
      await to.append(kind, 1, large(part), request(`fill-${kind}-${part}`));
  };

  test('go when the store keeps all of them and they were read, the oldest first', async () => {
    const one = await openSpool();
    await fill(one);
    await one.append('auth', 1, lines('next'));
    expect(files()).toHaveLength(2);
    const settled = { edge: 0, auth: 0 } as Record<LogKind, number>;
    const forget = () => one.deleteFlushed(kind => settled[kind] ?? 0, 2);
    settled.edge = 3;
    await forget(); // not read yet
    expect(existsSync(file(1))).toBe(true);
    await readAll(one);
    settled.edge = 2;
    await forget(); // one record is not settled
    expect(existsSync(file(1))).toBe(true);
    expect(one.kindsInOldest(kind => settled[kind] ?? 0)).toEqual(['edge']);
    settled.edge = 3;
    await forget();
    expect(existsSync(file(1))).toBe(false);
    expect(existsSync(file(2))).toBe(true); // the one that is written stays
  });

  test('that went leave their requests, for ten minutes from each', async () => {
    const one = await openSpool();
    await fill(one);
    await one.append('auth', 1, lines('next'), request('last', 600_000_000));
    await readAll(one);
    const all = () => 3;
    await one.deleteFlushed(all, 600_000_000);
    const keys = () => known.map(({ key }) => key).sort();
    await openSpool(all);
    expect(keys()).toEqual(['fill-edge-1', 'fill-edge-2', 'fill-edge-3', 'last']);
    await spool?.deleteFlushed(all, 600_000_001);
    expect(files()).toEqual(['000000000002.spool', 'next-numbers.json']);
    await openSpool(all);
    expect(keys()).toEqual(['last']);
  });

  test('numbers go on behind what the store keeps, though the segments are gone', async () => {
    const one = await openSpool(kind => (kind === 'edge' ? 1_000 : 0));
    await one.append('edge', 1, lines('a'));
    await one.append('auth', 1, lines('b'));
    expect(await readAll(one)).toEqual(['edge 1000+1 a', 'auth 0+1 b']);
  });

  test('numbers go on though the segments are gone and the store is another', async () => {
    const one = await openSpool();
    await fill(one);
    await one.append('auth', 1, lines('next'));
    await readAll(one);
    await one.deleteFlushed(() => 3, 2);
    expect(existsSync(file(1))).toBe(false);
    await (await openSpool()).append('edge', 1, lines('after'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 3+1 after');
  });

  test('numbers that only the store knew are known without it from then on', async () => {
    await openSpool(kind => (kind === 'edge' ? 1_000 : 0));
    await (await openSpool()).append('edge', 1, lines('a'));
    expect(await readAll(await openSpool())).toEqual(['edge 1000+1 a']);
  });

  test('next numbers that cannot be read stop the start, with a line that names the file', async () => {
    await openSpool(() => 1);
    const path = join(folder, 'next-numbers.json');
    writeFileSync(path, '{"edge":');
    await expect(openSpool()).rejects.toThrow(`${path} cannot be read`);
    rmSync(path);
  });

  test('one that cannot be begun refuses what comes, and takes it once it can', async () => {
    const one = await openSpool();
    await fill(one);
    mkdirSync(file(2)); // nothing can be written under that name
    await expect(one.append('edge', 1, lines('refused'))).rejects.toThrow();
    rmSync(file(2), { recursive: true });
    await one.append('edge', 1, lines('taken'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 4+1 taken');
  });

  test('one that was begun and never came into use does not stand in the way', async () => {
    const one = await openSpool();
    await fill(one);
    writeFileSync(file(2), '');
    await one.append('edge', 1, lines('taken'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 3+1 taken');
  });

  test('damage in one that is not the last is told, a copy kept, and the segments behind it are read', async () => {
    const one = await openSpool();
    await fill(one);
    await one.append('edge', 1, lines('behind'));
    await one.close();
    spool = undefined;
    const bytes = readFileSync(file(1));
    bytes[13 * MIB] = 0x21; // in the second block
    writeFileSync(file(1), bytes);
    expect((await readAll(await openSpool())).map(line => line.slice(0, 10))).toEqual([
      'edge 0+1 1',
      'edge 3+1 b',
    ]);
    expect(events).toMatchObject([{ type: 'spool_truncated', isTorn: false }]);
    expect(readFileSync(`${file(1)}.damaged`).equals(bytes)).toBe(true);
    const next = await openSpool();
    await next.append('edge', 1, lines('new'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 4+1 new');
  });
});

test('damage before the end of the last segment is told, and a copy kept: a torn end holds no sound block', async () => {
  const one = await openSpool();
  for (const text of ['first', 'second', 'third']) await one.append('edge', 1, lines(text));
  await one.close();
  spool = undefined;
  const bytes = readFileSync(file(1));
  bytes[bytes.indexOf('second')] = 0x21;
  writeFileSync(file(1), bytes);
  expect(await readAll(await openSpool())).toEqual(['edge 0+1 first']);
  expect(events).toMatchObject([{ type: 'spool_truncated', isTorn: false }]);
  expect(readFileSync(`${file(1)}.damaged`).equals(bytes)).toBe(true);
});

describe('a torn end', () => {
  /** A spool of a few blocks, and where each of them ends. */
  const make = async () => {
    const one = await openSpool();
    const ends = [0];
    const texts = ['first', 'second', '{"third":"\u{1f600}"}', 'x'.repeat(300)];
    for (const [i, text] of texts.entries()) {
      await one.append(i % 2 === 0 ? 'edge' : 'auth', 1, lines(text), i === 1 ? request('known') : undefined);
      ends.push(statSync(file(1)).size);
    }
    const all = await readAll(one);
    await one.close();
    spool = undefined;
    copyFileSync(file(1), join(root, 'whole'));
    return { ends, all, bytes: readFileSync(file(1)) };
  };
  const soundBefore = (ends: readonly number[], at: number) =>
    ends.filter(end => end > 0 && end <= at).length;

  test('is cut at recovery, whatever its length; exactly the whole blocks before it stay', async () => {
    const { ends, all, bytes } = await make();
    for (let length = 0; length <= bytes.length; length++) {
      writeFileSync(file(1), bytes.subarray(0, length));
      const cut = await openSpool();
      const sound = soundBefore(ends, length);
      expect(await readAll(cut)).toEqual(all.slice(0, sound));
      expect(known).toHaveLength(sound >= 2 ? 1 : 0);
      expect(statSync(file(1)).size).toBe(ends[sound]);
      await cut.close();
      spool = undefined;
    }
    const cuts = events.filter(({ type }) => type === 'spool_truncated');
    expect(cuts).toHaveLength(bytes.length + 1 - ends.length);
    expect(cuts.every(event => event.type === 'spool_truncated' && event.isTorn)).toBe(true);
  });

  test('is written over by what comes next', async () => {
    const { ends, all, bytes } = await make();
    writeFileSync(file(1), bytes.subarray(0, (ends[3] ?? 0) + 20));
    await (await openSpool()).append('auth', 1, lines('new'));
    expect(await readAll(await openSpool())).toEqual([...all.slice(0, 3), 'auth 1+1 new']);
  });

  test('of any bytes is cut, and any byte that changed ends what is sound', async () => {
    const { ends, all, bytes } = await make();
    const recover = async (content: Buffer) => {
      writeFileSync(file(1), content);
      const recovered = await readAll(await openSpool());
      await spool?.close();
      spool = undefined;
      return recovered;
    };
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length - 1),
        fc.integer({ min: 1, max: 255 }),
        fc.uint8Array({ maxLength: 40 }),
        async (at, change, garbage) => {
          const changed = Buffer.from(bytes);
          changed[at] = (changed[at] ?? 0) ^ change;
          const sound = soundBefore(ends, at);
          const recovered = await recover(changed);
          // The blank behind a checksum says nothing, so nothing is lost with it.
          const isBlank = bytes[at] === 0x20 && ends.includes(at - 8);
          expect(recovered).toEqual(isBlank ? all : all.slice(0, sound));
          expect(await recover(Buffer.concat([bytes.subarray(0, ends[sound]), garbage]))).toEqual(
            all.slice(0, sound),
          );
        },
      ),
      { numRuns: 150, seed: 3 },
    );
  });

  test('of a length that a head lies about is cut', async () => {
    const { ends, all, bytes } = await make();
    for (const lie of [
      '{"kind":"edge","first":9,"count":1,"bytes":1e300}',
      '{"kind":"edge","bytes":-1}',
      'null',
    ]) {
      writeFileSync(file(1), Buffer.concat([bytes, Buffer.from(`00000000 ${lie}\nx\n`)]));
      expect(await readAll(await openSpool())).toEqual(all);
      expect(statSync(file(1)).size).toBe(ends.at(-1));
    }
  });
});

test('records of a version that wrote another form of line stop the start, and stay', async () => {
  await (await openSpool()).append('edge', 1, lines('a'));
  await spool?.close();
  const json = '{"kind":"edge","first":0,"count":1,"bytes":2}';
  const old = Buffer.from(`${crc32('a\n', crc32(json)).toString(16).padStart(8, '0')} ${json}\na\n`);
  writeFileSync(file(1), old);
  await expect(openSpool()).rejects.toThrow(/another version of dendro/);
  expect(readFileSync(file(1))).toEqual(old);
});
