import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { CompletedRequest } from '../../src/intake/completed-request.ts';
import { Idempotency } from '../../src/intake/idempotency.ts';
import { Spool } from '../../src/intake/spool.ts';
import { parseQuarantined } from '../../src/logs/quarantine-line.ts';
import type { Event } from '../../src/observe/event.ts';
import { replaceFileMethods } from '../support/file-methods.ts';
import { useDirectory } from '../support/hooks.ts';

const MIB = 1024 * 1024;

const root = useDirectory();
let directory: string;
let events: Event[];
let spool: Spool | undefined;
let restoredRequests: CompletedRequest[];
let idempotency: Idempotency;
let nowMs: number;

beforeEach(() => {
  directory = join(root, 'spool');
  events = [];
  nowMs = 0;
});
afterEach(() => stopCleanly());

class RecordingIdempotency extends Idempotency {
  override restore(request: CompletedRequest, segmentNumber: number): void {
    restoredRequests.push(request);
    super.restore(request, segmentNumber);
  }
}
const emptyStore = () => 0;
const openSpool = async (durableUpTo: (kind: LogKind) => number = emptyStore): Promise<Spool> => {
  await spool?.close();
  restoredRequests = [];
  const timer = { now: () => nowMs };
  idempotency = new RecordingIdempotency({ directory, maxBytes: MIB, timer, clock: () => 0n });
  const observe = (event: Event) => events.push(event);
  spool = await Spool.open({ directory, durableUpTo, observe, idempotency });
  return spool;
};
const append = (
  to: Spool | undefined,
  kind: LogKind,
  count: number,
  content: Uint8Array,
  of?: CompletedRequest,
) => to?.append([{ kind, count, lines: content, request: of }]);
const lines = (text: string, count = 1) => Buffer.from(`${text}\n`.repeat(count));
const file = (number: number) => join(directory, `${String(number).padStart(12, '0')}.spool`);
const files = () => readdirSync(directory).sort();
const stopCleanly = async () => {
  await spool?.close();
  spool = undefined;
};
/** Closes the spool, and leaves its directory as after a crash. */
const crash = async () => {
  await stopCleanly();
  rmSync(join(directory, 'clean-stop.json'), { force: true });
};
const request = (key: string, atMicros = 1): CompletedRequest => ({
  key,
  digest: 'd',
  atMicros,
  forgetOnceDelivered: false,
  result: { accepted: 1, rejected: 0, errors: [] },
});

/** Reads all blocks as `kind first+count text`. */
const readAll = async (from: Spool): Promise<string[]> => {
  const all: string[] = [];
  while (from.unappliedBytes > 0) {
    const { blocks, confirm } = await from.readUnapplied(MIB);
    for (const { kind, firstSequence, count, lines } of blocks)
      all.push(`${kind} ${firstSequence}+${count} ${Buffer.from(lines).toString().split('\n', 1)[0]}`);
    confirm();
  }
  return all;
};

/** Counts the calls of datasync while `work` runs. */
async function countSyncs(work: () => Promise<unknown>): Promise<number> {
  let syncs = 0;
  const restore = await replaceFileMethods(({ datasync }) => ({
    datasync() {
      syncs++;
      return datasync.call(this);
    },
  }));
  await work().finally(restore);
  return syncs;
}

describe('Spool.append', () => {
  test('blocks are read in the order of append, with sequence numbers per kind', async () => {
    const first = await openSpool();
    await append(first, 'edge', 2, lines('a', 2));
    await append(first, 'auth', 1, lines('b'));
    await append(first, 'edge', 3, lines('c', 3));
    const all = ['edge 0+2 a', 'auth 0+1 b', 'edge 2+3 c'];
    expect(await readAll(first)).toEqual(all);
    expect(await readAll(await openSpool())).toEqual(all);
    await append(spool, 'edge', 1, lines('d'));
    await append(spool, 'auth', 1, lines('e'));
    expect(await readAll(await openSpool())).toEqual([...all, 'edge 5+1 d', 'auth 1+1 e']);
  });

  test('500 concurrent appends need at most 3 syncs, and 20 sequential ones 20: each is durable before it resolves', async () => {
    const many = await openSpool();
    const appendOne = (_: unknown, i: number) => append(many, 'edge', 1, lines(String(i)));
    const concurrent = await countSyncs(() => Promise.all(Array.from({ length: 500 }, appendOne)));
    expect(concurrent).toBeLessThanOrEqual(3);
    const sequential = await countSyncs(async () => {
      for (let i = 0; i < 20; i++) await appendOne(undefined, i);
    });
    expect(sequential).toBe(20);
    expect(await readAll(many)).toHaveLength(520);
    await crash(); // opening syncs the last block, which a killed process may have written without a sync
    expect(await countSyncs(() => openSpool())).toBe(1);
  });

  test('a block larger than the requested size is read as a whole', async () => {
    const large = await openSpool();
    await append(large, 'edge', 1, lines('x'.repeat(20 * MIB)));
    await append(large, 'edge', 1, lines('small'));
    const again = await openSpool();
    const { blocks } = await again.readUnapplied(1000);
    expect(blocks.map(({ lines }) => lines.length)).toEqual([20 * MIB + 1]);
    expect(await readAll(again)).toHaveLength(2);
  });

  /** Returns the function that repairs it. */
  const breakDisk = () =>
    replaceFileMethods(() => ({
      datasync: () => Promise.reject(new Error('sync failed')),
      truncate: () => Promise.reject(new Error('truncate failed')),
    }));

  test('an append removes what a failed append has left because it could not be removed then', async () => {
    const one = await openSpool();
    await append(one, 'edge', 1, lines('first'));
    const restore = await breakDisk();
    try {
      await expect(append(one, 'edge', 1, lines('x'.repeat(1_000)))).rejects.toThrow('sync failed');
      await expect(append(one, 'edge', 1, lines('y'))).rejects.toThrow('truncate failed');
    } finally {
      restore();
    }
    await append(one, 'edge', 1, lines('second'));
    expect(await readAll(await openSpool())).toEqual(['edge 0+1 first', 'edge 1+1 second']);
    expect(events).toEqual([]);
  });

  test('a new segment begins only if the last one has no rest of a failed append, whose sequence numbers it would reuse', async () => {
    const one = await openSpool();
    await append(one, 'edge', 1, lines('first'));
    const restore = await breakDisk();
    try {
      await expect(append(one, 'edge', 1, lines('failed'))).rejects.toThrow('sync failed');
      await expect(one.rotate()).rejects.toThrow('truncate failed');
    } finally {
      restore();
    }
    expect(await one.rotate()).toBe(2);
    await append(one, 'edge', 1, lines('second'));
    await crash();
    expect(await readAll(await openSpool())).toEqual(['edge 0+1 first', 'edge 1+1 second']);
  });

  test('append after close is rejected and creates no file', async () => {
    const closed = await openSpool();
    await append(closed, 'edge', 1, lines('before'));
    await closed.close();
    rmSync(file(1));
    await expect(append(closed, 'edge', 1, lines('after'))).rejects.toThrow();
    expect(files()).toEqual(['clean-stop.json']);
  });
});

describe('segments of the spool', () => {
  const large = (text: string) => lines(text.padEnd(12 * MIB, '.'));
  const fill = async (to: Spool, kind: LogKind = 'edge') => {
    for (const part of ['1', '2', '3']) {
      const filling = request(`fill-${kind}-${part}`);
      idempotency.restore(filling, (await append(to, kind, 1, large(part), filling)) ?? 0);
    }
  };

  test('a segment is deleted after the store applied and flushed all of its records', async () => {
    const one = await openSpool();
    await fill(one);
    await append(one, 'auth', 1, lines('next'));
    expect(files()).toHaveLength(2);
    const flushed = { edge: 0, auth: 0 } as Record<LogKind, number>;
    const deleteFlushed = () => one.deleteFlushed(kind => flushed[kind] ?? 0);
    flushed.edge = 3;
    await deleteFlushed(); // not applied yet
    expect(existsSync(file(1))).toBe(true);
    await readAll(one);
    flushed.edge = 2;
    await deleteFlushed(); // one record is not flushed
    expect(existsSync(file(1))).toBe(true);
    expect(one.unflushedBytes(kind => flushed[kind] ?? 0)).toBeGreaterThan(32 * MIB);
    flushed.edge = 3;
    expect(one.unflushedBytes(kind => flushed[kind] ?? 0)).toBe(0);
    await deleteFlushed();
    expect(existsSync(file(1))).toBe(false);
    expect(existsSync(file(2))).toBe(true); // the segment for new appends is kept
  });

  test('the deletion of a segment whose file cannot be deleted is retried', async () => {
    const one = await openSpool();
    await fill(one);
    await append(one, 'auth', 1, lines('next'));
    await readAll(one);
    rmSync(file(1));
    mkdirSync(file(1)); // rm refuses a directory
    await expect(one.deleteFlushed(() => 10)).rejects.toThrow(/director/);
    rmdirSync(file(1));
    writeFileSync(file(1), 'as if the file had not been deleted');
    await one.deleteFlushed(() => 10);
    expect(existsSync(file(1))).toBe(false);
    expect(await readAll(await openSpool())).toEqual(['auth 0+1 next']);
  });

  test('sequence numbers continue after a deleted segment, and its requests are kept for ten minutes', async () => {
    const one = await openSpool();
    await fill(one);
    await append(one, 'auth', 1, lines('next'), request('last'));
    await readAll(one);
    const all = () => 3;
    await one.deleteFlushed(all);
    // Sequence numbers continue, although the segment is deleted and the store is empty.
    await append(await openSpool(), 'edge', 1, lines('after'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 3+1 after');
    const keys = () => restoredRequests.map(({ key }) => key).sort();
    await openSpool(all);
    expect(keys()).toEqual(['fill-edge-1', 'fill-edge-2', 'fill-edge-3', 'last']);
    nowMs = 599_999;
    await spool?.deleteFlushed(all);
    expect(files()).toEqual([
      '000000000001.requests',
      '000000000002.spool',
      'clean-stop.json',
      'next-numbers.json',
    ]);
    nowMs = 600_000;
    await spool?.deleteFlushed(all);
    expect(files()).toEqual(['000000000002.spool', 'clean-stop.json', 'next-numbers.json']);
    await openSpool(all);
    expect(keys()).toEqual(['last']);
  });

  test('sequence numbers that only the store knew are saved', async () => {
    await openSpool(kind => (kind === 'edge' ? 1_000 : 0));
    await append(await openSpool(), 'edge', 1, lines('a'));
    expect(await readAll(await openSpool())).toEqual(['edge 1000+1 a']);
  });

  test('an unreadable file of sequence numbers is an error that names the file', async () => {
    await openSpool(() => 1);
    const path = join(directory, 'next-numbers.json');
    writeFileSync(path, '{"edge":');
    await expect(openSpool()).rejects.toThrow(`cannot read ${path}`);
    rmSync(path);
  });

  test('damage in a segment before the last is reported, a copy is kept, and later segments are read', async () => {
    const one = await openSpool();
    await fill(one);
    await append(one, 'edge', 1, lines('behind'));
    await stopCleanly();
    const bytes = readFileSync(file(1));
    bytes[13 * MIB] = 0x21; // in the second block
    writeFileSync(file(1), bytes);
    expect((await readAll(await openSpool())).map(line => line.slice(0, 10))).toEqual([
      'edge 0+1 1',
      'edge 2+1 3',
      'edge 3+1 b',
    ]);
    expect(events).toMatchObject([{ type: 'spool_damaged', lost: { edge: 1 }, isLostKnown: true }]);
    const [copy = ''] = readdirSync(join(directory, 'damaged'));
    expect(bytes.includes(readFileSync(join(directory, 'damaged', copy)))).toBe(true);
    const next = await openSpool();
    await append(next, 'edge', 1, lines('new'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 4+1 new');
  });
});

describe('damage in the last segment', () => {
  const damagedDirectory = () => join(directory, 'damaged');
  /** Writes a spool, crashes, changes the file, and opens it again. */
  const reopen = async (
    blocks: readonly (readonly [LogKind, number, Buffer])[],
    change: (bytes: Buffer) => Buffer | undefined,
    durableUpTo: (kind: LogKind) => number = emptyStore,
    stop: () => Promise<void> = crash,
  ) => {
    const one = await openSpool();
    for (const [kind, count, content] of blocks) await append(one, kind, count, content);
    await stop();
    const bytes = readFileSync(file(1));
    writeFileSync(file(1), change(bytes) ?? bytes);
    return readAll(await openSpool(durableUpTo));
  };
  const flip = (text: string) => (bytes: Buffer) => {
    const at = bytes.indexOf(text);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return undefined;
  };
  const blocks = [
    ['edge', 2, lines('first', 2)],
    ['edge', 3, lines('second', 3)],
    ['auth', 1, lines('third')],
    ['edge', 1, lines('fourth')],
  ] as const;

  test('the sound blocks behind the damage are kept, the damaged bytes are copied, and the lost records are counted', async () => {
    expect(await reopen(blocks, flip('second'))).toEqual([
      'edge 0+2 first',
      'auth 0+1 third',
      'edge 5+1 fourth',
    ]);
    expect(events).toMatchObject([
      { type: 'spool_damaged', path: file(1), lost: { edge: 3 }, isLostKnown: true, readable: 0 },
    ]);
    const [copy = '', ...others] = readdirSync(damagedDirectory());
    expect(others).toEqual([]);
    const path = join(damagedDirectory(), copy);
    expect(readFileSync(path, 'utf8')).toMatch(
      / \{"form":2,"kind":"edge","first":2,[^\n]*\nrecond\nsecond\nsecond\n$/,
    );
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await readAll(await openSpool())).toHaveLength(3);
    expect(events).toHaveLength(1); // the next start finds a sound spool
    await append(spool, 'edge', 1, lines('new'));
    expect((await readAll(await openSpool())).at(-1)).toBe('edge 6+1 new');
  });

  test('no record is lost if the store has the records of the damaged block', async () => {
    await reopen(blocks, flip('second'), kind => (kind === 'edge' ? 5 : 0));
    expect(events).toMatchObject([{ type: 'spool_damaged', lost: {}, isLostKnown: true }]);
  });

  test.each([
    ['its first log line', 'fourth', { edge: 1 }, true],
    ['its header', '{"form":2,"kind":"edge","first":5', {}, false],
  ])(
    'a complete last block with a changed byte in %s is damage, not an unfinished write',
    async (_, text, lost, isLostKnown) => {
      expect(await reopen(blocks, flip(text))).toHaveLength(3);
      expect(events).toMatchObject([{ type: 'spool_damaged', lost, isLostKnown }]);
    },
  );

  test.each([
    ['a zero byte', (bytes: Buffer) => bytes.fill(0, bytes.indexOf('fourth'), bytes.indexOf('fourth') + 1)],
    ['only zeros in its lines', (bytes: Buffer) => bytes.fill(0, bytes.indexOf('fourth'))],
    ['only zeros', (bytes: Buffer) => bytes.fill(0, bytes.indexOf('third\n') + 'third\n'.length)],
  ])(
    'a last block of full length with %s may have been acknowledged, so a copy is kept, even after a crash',
    async (_, change) => {
      let changed = Buffer.alloc(0);
      expect(await reopen(blocks, bytes => (changed = Buffer.from(change(bytes))))).toHaveLength(3);
      expect(events).toMatchObject([{ type: 'spool_damaged' }]);
      const [copy = '', ...others] = readdirSync(damagedDirectory());
      expect(others).toEqual([]);
      const start = changed.indexOf('third\n') + 'third\n'.length;
      expect(readFileSync(join(damagedDirectory(), copy)).equals(changed.subarray(start))).toBe(true);
    },
  );

  describe('after a clean stop', () => {
    /** Leaves the file of the last clean stop as it was at the start. */
    const crashAfterStart = async () => {
      const atStart = readFileSync(join(directory, 'clean-stop.json'));
      await stopCleanly();
      writeFileSync(join(directory, 'clean-stop.json'), atStart);
    };
    const changeFile = (change: (bytes: Buffer) => Buffer) =>
      writeFileSync(file(1), change(readFileSync(file(1))));

    test('an incomplete last block is damage, because no write was unfinished', async () => {
      const cutOff = (bytes: Buffer) => bytes.subarray(0, -3);
      expect(await reopen(blocks, cutOff, emptyStore, stopCleanly)).toHaveLength(3);
      expect(events).toMatchObject([{ type: 'spool_damaged', lost: { edge: 1 }, isLostKnown: true }]);
      expect(readdirSync(damagedDirectory())).toHaveLength(1);
    });

    test('missing blocks at the end are reported once, even if all others are sound', async () => {
      const withoutLast = (bytes: Buffer) => bytes.subarray(0, bytes.indexOf('third\n') + 'third\n'.length);
      expect(await reopen(blocks, withoutLast, emptyStore, stopCleanly)).toHaveLength(3);
      expect(events).toEqual([{ type: 'spool_incomplete', directory, kinds: [], lost: {} }]);
      await crashAfterStart();
      expect(await readAll(await openSpool())).toHaveLength(3);
      expect(events).toHaveLength(1);
    });

    test('if blocks behind a cut block are missing, the number of lost records is not known', async () => {
      const cutOff = (bytes: Buffer) => bytes.subarray(0, bytes.indexOf('second') + 3);
      expect(await reopen(blocks, cutOff, emptyStore, stopCleanly)).toHaveLength(1);
      expect(events).toMatchObject([{ type: 'spool_damaged', lost: { edge: 3 }, isLostKnown: false }]);
    });

    test('a later crash still tells a damaged block of before the stop from an unfinished write', async () => {
      await reopen(blocks, bytes => bytes, emptyStore, stopCleanly);
      const end = statSync(file(1)).size;
      await append(spool, 'edge', 1, lines('fifth'));
      await crashAfterStart();
      changeFile(bytes => bytes.fill(0, end - 'fourth\n'.length, end).subarray(0, -3));
      expect(await readAll(await openSpool())).toHaveLength(3);
      expect(events).toMatchObject([
        { type: 'spool_damaged', lost: { edge: 1 }, isLostKnown: true },
        { type: 'spool_truncated' },
      ]);
    });

    test('an unfinished write into a repaired segment is told from damage', async () => {
      await reopen(blocks, bytes => bytes.subarray(0, -3), emptyStore, stopCleanly);
      await append(spool, 'edge', 1, lines('5'));
      await crashAfterStart();
      changeFile(bytes => bytes.subarray(0, -1));
      events.length = 0;
      expect(await readAll(await openSpool())).toHaveLength(3);
      expect(events).toMatchObject([{ type: 'spool_truncated' }]);
    });
  });

  test('two damaged places and an unfinished write at the end are told apart', async () => {
    const all = await reopen(blocks, bytes => {
      flip('first\n')(bytes);
      flip('third')(bytes);
      return bytes.subarray(0, -3);
    });
    expect(all).toEqual(['edge 2+3 second']);
    expect(events).toMatchObject([
      { type: 'spool_damaged', lost: { edge: 2, auth: 1 }, isLostKnown: true },
      { type: 'spool_truncated' },
    ]);
    expect(readdirSync(damagedDirectory())).toHaveLength(2);
  });

  test('a log line that looks like the header of a block is not read as one', async () => {
    const json = '{"form":2,"kind":"edge","first":90,"count":1,"bytes":2}';
    const checksum = crc32('x\n', crc32(json)).toString(16).padStart(8, '0');
    const forged = Buffer.from(`\x1f${checksum}\x1f${json}\nx\nend\n`);
    expect(await reopen([['auth', 3, forged], ...blocks], flip('end'))).toHaveLength(4);
  });

  test.each([
    ['before', '\x1f1\x1f'],
    ['at', '\x1f1234567'],
  ])(
    'damage %s an id that looks like the header of a block changes neither the recovery nor the count of the records',
    async (_, damagedText) => {
      const forgedHeader = '1234567 {"form":2,"kind":"edge","first":0,"count":999999,"bytes":1';
      const common = { timestampMicros: 1, project: 'p', eventMessage: 'm', metadata: '{}' };
      const block = toLogLines(
        'edge',
        ['1', '2', forgedHeader, '4', '5'].map(id => ({ ...common, id, extracted: { url: 'u', path: '/' } })),
      );
      const all = await reopen([['edge', block.count, Buffer.from(block.lines)]], bytes => {
        bytes[bytes.indexOf(damagedText)] = 0x21;
        return undefined;
      });
      expect(all).toEqual([]);
      expect(events).toMatchObject([
        { type: 'spool_damaged', lost: { edge: 5 }, isLostKnown: true, readable: 4 },
      ]);
      // `dendro ingest` can load the readable ones.
      const [copy = ''] = readdirSync(damagedDirectory()).filter(name => name.endsWith('.ndjson'));
      const loaded = readFileSync(join(damagedDirectory(), copy), 'utf8').trimEnd().split('\n');
      const parsed = loaded.map(line => parseQuarantined(JSON.parse(line), 0));
      expect(parsed).toMatchObject(Array(4).fill({ kind: 'edge', parsed: { value: { project: 'p' } } }));
    },
  );

  test('if the damaged bytes cannot be copied, opening fails and the file is unchanged', async () => {
    const one = await openSpool();
    for (const [kind, count, content] of blocks) await append(one, kind, count, content);
    await stopCleanly();
    writeFileSync(damagedDirectory(), ''); // so that the directory cannot be created
    const bytes = readFileSync(file(1));
    flip('second')(bytes);
    writeFileSync(file(1), bytes);
    await expect(openSpool()).rejects.toThrow(`${file(1)} is damaged and cannot be repaired`);
    expect(readFileSync(file(1)).equals(bytes)).toBe(true);
  });
});

describe('a spool whose files are missing', () => {
  /** Three segments: in each, 2 records of kind edge and one of kind auth, in blocks of their own. */
  const createSegments = async () => {
    await openSpool();
    for (const text of ['first', 'second', 'third']) {
      await append(spool, 'edge', 2, lines(text, 2));
      await append(spool, 'auth', 1, lines(text));
      await spool?.rotate();
    }
    await crash();
  };
  const report = (lost: object) => ({ type: 'spool_incomplete', directory, kinds: [], lost });
  const cutLastBlock = (number: number) => {
    const bytes = readFileSync(file(number));
    writeFileSync(
      file(number),
      bytes.subarray(0, bytes.lastIndexOf('\n', bytes.lastIndexOf(' {"form":')) + 1),
    );
  };
  test.each<[string, object, () => void, number]>([
    ['a segment in the middle', { edge: 2, auth: 1 }, () => rmSync(file(2)), 0],
    ['two segments', { edge: 3, auth: 1 }, () => [1, 2].map(number => rmSync(file(number))), 1],
    ['the last block of a segment that is not the last', { auth: 1 }, () => cutLastBlock(2), 0],
    ['the first segment, after a part of it was stored', { edge: 1 }, () => rmSync(file(1)), 1],
  ])('%s: the start counts the lost records once', async (_, lost, damage, durable) => {
    await createSegments();
    damage();
    const durableUpTo = (kind: LogKind) => (kind === 'edge' || kind === 'auth' ? durable : 0);
    await openSpool(durableUpTo);
    expect(events).toEqual([report(lost)]);
    await append(spool, 'edge', 1, lines('new'));
    await crash();
    await openSpool(durableUpTo);
    expect(events).toHaveLength(1);
  });

  test('segments that are missing because the store has their records are not reported', async () => {
    await createSegments();
    rmSync(file(1));
    rmSync(file(2));
    await openSpool(kind => ({ edge: 4, auth: 2 })[kind as string] ?? 0);
    expect(events).toEqual([]);
  });

  test('a failed write does not look like missing records', async () => {
    await openSpool();
    await append(spool, 'edge', 1, lines('first'));
    const restore = await replaceFileMethods(() => ({
      datasync: () => Promise.reject(new Error('no space left')),
    }));
    await expect(append(spool, 'edge', 5, lines('failed', 5))).rejects.toThrow('no space left');
    restore();
    await spool?.rotate();
    await append(spool, 'edge', 1, lines('second'));
    await crash();
    expect(await readAll(await openSpool())).toEqual(['edge 0+1 first', 'edge 1+1 second']);
    expect(events).toEqual([]);
  });

  test('a spool without segments is reported if it has a file of sequence numbers', async () => {
    await openSpool(() => 1_000);
    rmSync(file(1));
    events.length = 0;
    await openSpool();
    expect(events).toEqual([{ type: 'spool_incomplete', directory, kinds: [], lost: {} }]);
  });
});

describe('an incomplete block at the end of the spool', () => {
  /** Creates a spool of four blocks. `ends` are the offsets after each of them. */
  const createSpool = async () => {
    const one = await openSpool();
    const ends = [0];
    const texts = ['first', 'second', '{"third":"\u{1f600}"}', 'x'.repeat(300)];
    for (const [i, text] of texts.entries()) {
      await append(
        one,
        i % 2 === 0 ? 'edge' : 'auth',
        1,
        lines(text),
        i === 1 ? request('restored') : undefined,
      );
      ends.push(statSync(file(1)).size);
    }
    const all = await readAll(one);
    await crash();
    copyFileSync(file(1), join(root, 'whole'));
    return { ends, all, bytes: readFileSync(file(1)) };
  };
  const countBlocksBefore = (ends: readonly number[], at: number) =>
    ends.filter(end => end > 0 && end <= at).length;

  test('a truncation at any offset keeps exactly the complete blocks before it', async () => {
    const { ends, all, bytes } = await createSpool();
    for (let length = 0; length <= bytes.length; length++) {
      writeFileSync(file(1), bytes.subarray(0, length));
      const truncated = await openSpool();
      const validBlocks = countBlocksBefore(ends, length);
      expect(await readAll(truncated)).toEqual(all.slice(0, validBlocks));
      expect(restoredRequests).toHaveLength(validBlocks >= 2 ? 1 : 0);
      expect(statSync(file(1)).size).toBe(ends[validBlocks]);
      await crash();
    }
    const truncations = events.filter(({ type }) => type === 'spool_truncated');
    expect(truncations).toHaveLength(bytes.length + 1 - ends.length);
    expect(events).toHaveLength(truncations.length);
    expect(existsSync(join(directory, 'damaged'))).toBe(false);
  }, 120_000); // syncs the file hundreds of times

  test('all blocks but the one with a changed byte are kept, and garbage behind them is removed', async () => {
    const { ends, all, bytes } = await createSpool();
    const recover = async (content: Buffer) => {
      writeFileSync(file(1), content);
      const recovered = await readAll(await openSpool());
      await stopCleanly();
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
          const validBlocks = countBlocksBefore(ends, at);
          const recovered = await recover(changed);
          // The space after a checksum is not checked, so changing it loses nothing.
          const isSeparator = bytes[at] === 0x20 && ends.includes(at - 8);
          expect(recovered).toEqual(isSeparator ? all : all.filter((_, block) => block !== validBlocks));
          expect(await recover(Buffer.concat([bytes.subarray(0, ends[validBlocks]), garbage]))).toEqual(
            all.slice(0, validBlocks),
          );
        },
      ),
      { numRuns: 150, seed: 3 },
    );
  });
});

test('a spool with another line format is an error, and its file is unchanged', async () => {
  await append(await openSpool(), 'edge', 1, lines('a'));
  await spool?.close();
  const json = '{"kind":"edge","first":0,"count":1,"bytes":2}';
  const old = Buffer.from(`${crc32('a\n', crc32(json)).toString(16).padStart(8, '0')} ${json}\na\n`);
  writeFileSync(file(1), old);
  await expect(openSpool()).rejects.toThrow(/another version of dendro/);
  expect(readFileSync(file(1))).toEqual(old);
});
