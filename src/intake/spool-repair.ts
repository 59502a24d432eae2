// Repairs a damaged segment of the spool: keeps its sound blocks and moves the damaged bytes to `damaged/`. Counts the records that
// are lost, and writes those that can still be read to a file that `dendro ingest` loads.
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { OperatorError } from '../domain/errors.ts';
import { isLogKind, LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { lineFieldsOf, UNIT_SEPARATOR } from '../domain/log-line.ts';
import { stringifyExactJson } from '../logs/exact-json.ts';
import type { Event } from '../observe/event.ts';
import { createDirectory, writeFileDurably } from '../system/files.ts';
import { parseSpooledLine } from './quarantine.ts';
import { decodeBlocks, findBlock, isTornWrite, type SpoolBlock } from './spool-block.ts';

export interface RepairContext {
  /**
   * The segment was complete up to this offset (clean-stop.json), so a torn write can begin only at or after it. Infinite for every
   * segment but the last, because only the last one can have a torn write.
   */
  readonly completeBytes: number;
  /** For each kind in the earlier segments, the sequence number after its last record. */
  readonly earlierEnds: ReadonlyMap<LogKind, number>;
  /** The sequence number up to which the store has the records durably (exclusive). They are not lost with the spool. */
  readonly durableUpTo: (kind: LogKind) => number;
}

type SpoolDamage = Extract<Event, { type: 'spool_damaged' }>;

/** Damaged bytes between sound blocks. */
interface DamagedRange {
  readonly start: number;
  readonly bytes: Buffer;
  readonly blocks: readonly DamagedBlock[];
}

/** A block with a wrong checksum whose header can be read. */
interface DamagedBlock {
  /** Where it ends in its segment, by the length in its header. */
  readonly end: number;
  readonly kind: LogKind;
  readonly firstSequence: number;
  readonly count: number;
  readonly lines: readonly string[];
}

/**
 * Rewrites the segment without its damaged bytes, and returns what was damaged. Leaves a torn write at the end in place. Returns
 * undefined if nothing else is invalid. If a crash interrupts it, the next call repeats the same steps.
 */
export async function repairSegment(path: string, context: RepairContext): Promise<SpoolDamage | undefined> {
  const data = await readFile(path);
  const { blocks, ranges } = scanSegment(data, context.completeBytes);
  if (ranges.length === 0) return undefined;
  const directory = join(dirname(path), 'damaged');
  let readable = 0;
  try {
    createDirectory(directory);
    for (const range of ranges) readable += await keepCopy(directory, path, range, context.durableUpTo);
    await writeFileDurably(path, Buffer.concat(withoutRanges(data, ranges)));
  } catch (error) {
    throw new OperatorError(
      `${path} is damaged and cannot be repaired: ${(error as Error).message}; the file is unchanged. Free some disk space, or check the permissions of ${dirname(path)}`,
    );
  }
  const { lost, isLostKnown } = countLost(blocks, ranges, context);
  const damagedBytes = ranges.reduce((sum, { bytes }) => sum + bytes.length, 0);
  // The last damaged block may have been cut off. If the segment would be too short even with that block at its full length,
  // blocks after it are missing, and their number is unknown.
  const fullLength = Math.max(data.length, ranges.at(-1)?.blocks.at(-1)?.end ?? 0);
  const isEndMissing = isTooShort(fullLength, context.completeBytes);
  return {
    ...{ type: 'spool_damaged', path, directory, damagedBytes, readable, lost },
    isLostKnown: isLostKnown && !isEndMissing,
  };
}

/** Whether bytes at the end of a segment are missing. `completeBytes` is as in RepairContext. */
export function isTooShort(bytes: number, completeBytes: number): boolean {
  return Number.isFinite(completeBytes) && bytes < completeBytes;
}

/**
 * Returns the sound blocks, the damaged ranges, and the length of a torn write at the end. `completeBytes` is as in RepairContext.
 */
export function scanSegment(
  data: Buffer,
  completeBytes: number,
): {
  readonly blocks: readonly SpoolBlock[];
  readonly ranges: readonly DamagedRange[];
  readonly tornBytes: number;
} {
  const blocks: SpoolBlock[] = [];
  const ranges: DamagedRange[] = [];
  let tornBytes = 0;
  for (let offset = 0; offset < data.length; ) {
    const decoded = decodeBlocks(data.subarray(offset), offset);
    for (const block of decoded.blocks) blocks.push(block);
    offset += decoded.decodedBytes;
    const next = findBlock(data, offset) ?? data.length;
    if (next === data.length) tornBytes = tornBytesAtEnd(data.subarray(Math.max(offset, completeBytes)));
    const bytes = data.subarray(offset, next - tornBytes);
    if (bytes.length > 0) ranges.push({ start: offset, bytes, blocks: readDamagedBlocks(bytes, offset) });
    offset = next;
  }
  return { blocks, ranges, tornBytes };
}

/**
 * The length of the torn write at the end of these bytes; 0 if there is none. Only the last block can be torn, so everything before
 * its header counts as damage.
 */
function tornBytesAtEnd(invalid: Buffer): number {
  const lastHeaderIndex = [...invalid.toString('latin1').matchAll(HEADER)].at(-1)?.index ?? 0;
  // A match of HEADER includes the newline before the header, except at the start of the bytes.
  const tail = invalid.subarray(lastHeaderIndex === 0 ? 0 : lastHeaderIndex + 1);
  return isTornWrite(tail) ? tail.length : 0;
}

/**
 * Matches a header at the start of the bytes or of a line. A header has no unit separator. A log line has several, so it does not
 * match, even if its id looks like a header and the separator before the id is damaged.
 */
const HEADER =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the unit separator
  /(?:^|\n)[^\n\x1f]{8} \{"form":\d+,"kind":"(\w+)","first":(\d{1,15}),"count":(\d{1,9}),"bytes":(\d*)[^\n\x1f]*\n/g;

/** `offset`: where `bytes` start in the segment. */
function readDamagedBlocks(bytes: Buffer, offset: number): DamagedBlock[] {
  const headers = [...bytes.toString('latin1').matchAll(HEADER)];
  return headers.flatMap(({ index, 0: text, 1: kind, 2: first, 3: count, 4: lineBytes }, i) => {
    if (!isLogKind(kind)) return [];
    const lines = bytes.toString('utf8', index + text.length, headers[i + 1]?.index ?? bytes.length);
    return [
      {
        end: offset + index + text.length + Number(lineBytes),
        kind,
        firstSequence: Number(first),
        count: Number(count),
        lines: lines.split('\n').slice(0, Number(count)),
      },
    ];
  });
}

/**
 * Writes the damaged bytes to a `.bytes` file. Writes those of their records that can be read and are not in the store to an
 * `.ndjson` file, and returns the number of these records. The checksum in the file names prevents overwriting the copy of
 * earlier damage.
 */
async function keepCopy(
  directory: string,
  path: string,
  { start, bytes, blocks }: DamagedRange,
  durableUpTo: (kind: LogKind) => number,
): Promise<number> {
  const checksum = crc32(bytes).toString(16).padStart(8, '0');
  const copy = join(directory, `${basename(path, '.spool')}-at-${start}-${checksum}`);
  await writeFileDurably(`${copy}.bytes`, bytes);
  const records = blocks.flatMap(({ kind, firstSequence, lines }) =>
    lines.slice(Math.max(0, durableUpTo(kind) - firstSequence)).flatMap(line => toRecordLine(kind, line)),
  );
  if (records.length > 0) await writeFileDurably(`${copy}.ndjson`, records.join(''));
  return records.length;
}

/**
 * Returns a log line in the form of a quarantined record, which contains its kind. Returns an empty array if the line cannot be
 * read.
 */
function toRecordLine(kind: LogKind, line: string): string[] {
  // 2: the flag at the start and the metadata at the end (log-line.ts)
  if (line.split(UNIT_SEPARATOR).length !== lineFieldsOf(kind).length + 2) return [];
  const parsed = parseSpooledLine(line);
  if (!('value' in parsed)) return [];
  return [
    `{"quarantine":${JSON.stringify({ source: kind })},"record":${stringifyExactJson(parsed.value)}}\n`,
  ];
}

function withoutRanges(data: Buffer, ranges: readonly DamagedRange[]): Buffer[] {
  const parts: Buffer[] = [];
  let end = 0;
  for (const { start, bytes } of ranges) {
    parts.push(data.subarray(end, start));
    end = start + bytes.length;
  }
  return [...parts, data.subarray(end)];
}

/**
 * Counts the sequence numbers that are missing around the damage and that the store does not have. An upper limit: in segments of
 * versions up to 0.2.0, a failed write left a gap in the numbers, too.
 */
function countLost(
  blocks: readonly SpoolBlock[],
  ranges: readonly DamagedRange[],
  { earlierEnds, durableUpTo }: RepairContext,
): Pick<SpoolDamage, 'lost' | 'isLostKnown'> {
  const lost: Partial<Record<LogKind, number>> = {};
  /** The ranges with a gap in the numbers of some kind. How many records the other ranges had is unknown. */
  const explained = new Set<DamagedRange>();
  const endOf = (block: SpoolBlock | DamagedBlock | undefined) => block && block.firstSequence + block.count;
  for (const kind of LOG_KINDS) {
    const blocksOfKind = blocks.filter(block => block.kind === kind);
    /** The end of each gap, by its first number. Neighbouring ranges share a gap. */
    const gaps = new Map<number, number>();
    for (const range of ranges) {
      const before = blocksOfKind.findLast(({ offset }) => offset < range.start);
      const after = blocksOfKind.find(({ offset }) => offset > range.start);
      const damaged = range.blocks.filter(block => block.kind === kind);
      const first = endOf(before) ?? earlierEnds.get(kind) ?? damaged[0]?.firstSequence;
      const end = after?.firstSequence ?? endOf(damaged.at(-1));
      if (first === undefined || end === undefined || end <= first) continue;
      explained.add(range);
      gaps.set(first, Math.max(gaps.get(first) ?? 0, end));
    }
    let count = 0;
    for (const [first, end] of gaps) count += Math.max(0, end - Math.max(first, durableUpTo(kind)));
    if (count > 0) lost[kind] = count;
  }
  return { lost, isLostKnown: ranges.every(range => explained.has(range)) };
}
