import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { inspectFiles } from '../../src/intake/inspect-files.ts';
import { Spool } from '../../src/intake/spool.ts';
import { readSegment } from '../../src/intake/spool-snapshot.ts';
import { formatQuarantineLine } from '../../src/logs/quarantine-line.ts';
import { OpenFile } from '../../src/system/open-file.ts';
import { useDirectory } from '../support/hooks.ts';

const directory = useDirectory();

const inspect = () => inspectFiles(directory, () => {});
const SEGMENT = 'spool/000000000001.spool';
const segmentFile = () => join(directory, SEGMENT);

async function writeSpool(): Promise<void> {
  const spool = await Spool.open({
    directory: join(directory, 'spool'),
    durableUpTo: () => 0,
    observe: () => {},
  });
  const request = {
    ...{ key: 'k', digest: 'd', atMicros: 1, forgetOnceDelivered: false },
    result: { accepted: 2, rejected: 0, errors: [] },
  };
  const append = (kind: LogKind, ...lines: string[]) =>
    spool.append([
      { kind, count: lines.length, lines: Buffer.from(lines.map(line => `${line}\n`).join('')), request },
    ]);
  await append('edge', 'first', 'second');
  await append('auth', 'third');
  await append('edge', 'fourth');
  await spool.close();
}

/** The blocks of the segment as text. If one cannot be read, those before it. */
async function readRecords(): Promise<string> {
  const file = new OpenFile(segmentFile(), 'segment');
  const read: unknown[] = [];
  try {
    for await (const { blocks } of readSegment(file))
      read.push(...blocks.map(({ lines, ...header }) => [header, String(lines)]));
  } catch {
    read.push('damaged');
  } finally {
    await file.close();
  }
  return JSON.stringify(read);
}

/** Changes one byte, calls `check` and restores the file. */
async function withFlip(file: string, offset: number, check: () => Promise<void>): Promise<void> {
  const content = readFileSync(file);
  const flipped = Buffer.from(content);
  flipped[offset] = (flipped[offset] ?? 0) ^ (1 << (offset % 8));
  writeFileSync(file, flipped);
  await check();
  writeFileSync(file, content);
}

describe('the spool', () => {
  test('every changed byte of a segment that changes a record is found, with its range', async () => {
    await writeSpool();
    expect(await inspect()).toMatchObject({ spool: { records: 4, damages: [] } });
    const [size, original] = [readFileSync(segmentFile()).length, await readRecords()];
    let found = 0;
    for (let offset = 0; offset < size; offset++)
      await withFlip(segmentFile(), offset, async () => {
        const { damages } = (await inspect()).spool;
        const isChanged = (await readRecords()) !== original;
        expect([offset, damages.length > 0]).toEqual([offset, isChanged]);
        if (!isChanged) return;
        found++;
        const [, start, end] = /^bytes (\d+) to (\d+)$/.exec(damages[0]?.place ?? '') ?? [];
        expect(damages[0]?.file).toBe(SEGMENT);
        expect(Number(start) <= offset && offset <= Number(end)).toBe(true);
      });
    expect(found).toBe(size - 3); // the space after each of the three checksums has no meaning
  });

  test('a segment that ends within a block is reported, whether or not the last process stopped cleanly', async () => {
    await writeSpool();
    const content = readFileSync(segmentFile());
    writeFileSync(segmentFile(), content.subarray(0, -3));
    expect((await inspect()).spool).toMatchObject({ records: 3, damages: [{ file: SEGMENT }] });
    writeFileSync(join(directory, 'spool/clean-stop.json'), '{}');
    const { damages } = (await inspect()).spool;
    expect(damages[0]?.problem).toContain('an unfinished write that was not acknowledged');
  });

  test.each([
    ['between two blocks', 'third\n', 3],
    ['within a block', 'thi', 2],
    ['at its start', '', 0],
  ])(
    'a segment that was cut %s after a clean stop is reported with the missing bytes',
    async (_, lastText, records) => {
      await writeSpool();
      const content = readFileSync(segmentFile());
      const end = content.indexOf(lastText) + lastText.length;
      writeFileSync(segmentFile(), content.subarray(0, end));
      const { spool } = await inspect();
      expect(spool).toMatchObject({ records, damages: [{ file: SEGMENT }] });
      expect(spool.damages[0]?.place).toMatch(new RegExp(`^bytes \\d+ to ${content.length - 1}$`));
      expect(spool.damages[0]?.problem).toContain('shorter than');
    },
  );

  test('a line of the idempotency log that cannot be read is reported', async () => {
    mkdirSync(join(directory, 'spool'));
    writeFileSync(join(directory, 'spool/000000000001.requests'), '{"key":"k"}\n');
    const { damages } = (await inspect()).spool;
    expect(damages).toMatchObject([{ file: 'spool/000000000001.requests', place: 'bytes 0 to 11' }]);
  });
});

test('a line of the quarantine that cannot be read is reported', async () => {
  const line = formatQuarantineLine(
    'edge',
    1_700_000_000_000_000,
    { index: 0, value: { text: 'zwei ü' } },
    { code: 'no_project', message: 'it has "no" project' },
  );
  const ofVersion030 = line.replace(/\}\n$/, ',"checksum":"00000000"}\n');
  const broken = [
    '{"text":1}\n',
    line.slice(0, -3),
    '\n',
    '{"quarantine":{"source":"edge"},"record":"\xff"}\n',
  ];
  const bytes = [line, ofVersion030, ...broken].map(text =>
    Buffer.from(text, text.includes('\xff') ? 'latin1' : 'utf8'),
  );
  writeFileSync(join(directory, 'quarantine.ndjson'), Buffer.concat(bytes));
  const { records, damages } = (await inspect()).quarantine;
  const start = Buffer.byteLength(line + ofVersion030);
  expect(records).toBe(2);
  expect(damages.map(({ place }) => place)).toEqual([
    `bytes ${start} to ${start + 10}`,
    `bytes ${start + 11} to ${start + 11 + Buffer.byteLength(line) - 3}`,
    expect.any(String),
  ]);
});
