// Reads every record of the spool and the quarantine without changing them, and reports what is damaged. Blocks of the spool
// have a checksum. The quarantine and the idempotency log have none, so only lines that cannot be parsed are reported.
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { byteRange, type Damage } from '../domain/damage.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import { parseQuarantined } from '../logs/quarantine-line.ts';
import { parseJson } from '../system/parse-json.ts';
import { parseRequestLine } from './completed-request.ts';
import { QUARANTINE_FILES } from './quarantine.ts';
import { spoolDirectoryIn } from './spool.ts';
import { isTooShort, scanSegment } from './spool-repair.ts';
import {
  findNextSequences,
  listSegments,
  readCompleteBytes,
  readSequences,
  SEQUENCES_FILE,
  type SegmentSequences,
  trackBlock,
} from './spool-state.ts';

const NEWLINE = 0x0a;

/** How many records were read, and what is damaged. */
export interface Inspection {
  readonly records: number;
  readonly damages: readonly Damage[];
}

/**
 * The caller must hold the lock of the data directory. `onFile` is called before each file is read. `durableUpTo` comes from the
 * store: it shows whether segments are missing.
 */
export async function inspectFiles(
  dataDirectory: string,
  onFile: (file: string) => void,
  durableUpTo: (kind: LogKind) => number = () => 0,
): Promise<{ readonly spool: Inspection; readonly quarantine: Inspection }> {
  return {
    spool: await inspectSpool(dataDirectory, onFile, durableUpTo),
    quarantine: await inspectQuarantine(dataDirectory, onFile),
  };
}

async function inspectSpool(
  dataDirectory: string,
  onFile: (file: string) => void,
  durableUpTo: (kind: LogKind) => number,
): Promise<Inspection> {
  const directory = spoolDirectoryIn(dataDirectory);
  const names = existsSync(directory) ? readdirSync(directory).sort() : [];
  const segments = listSegments(directory);
  const damages: Damage[] = [];
  const sequences: SegmentSequences[] = [];
  let records = 0;
  for (const name of segments) {
    onFile(`spool/${name}`);
    const isLast = name === segments.at(-1);
    // Invalid bytes before this offset are damage (clean-stop.json). Those after it can be an unfinished write, which only the
    // last segment can have.
    const completeBytes = isLast ? await readCompleteBytes(directory) : Number.POSITIVE_INFINITY;
    const data = await readFile(join(directory, name));
    const found = inspectSegment(`spool/${name}`, data, completeBytes);
    records += found.records;
    sequences.push(found);
    damages.push(...found.damages);
  }
  // If the file of the sequence numbers cannot be read, it is reported below.
  const saved = await readSequences(directory).catch(() => undefined);
  const found = saved && findNextSequences(saved, sequences, durableUpTo);
  if (found?.isIncomplete)
    damages.push({ file: 'spool/', place: '', problem: 'whole files or the ends of files are missing' });
  for (const [kind, count] of Object.entries(found?.lost ?? {}))
    damages.push({ file: 'spool/', place: '', problem: `${count} records of kind ${kind} are missing` });
  for (const name of names.filter(name => /^\d+\.requests$/.test(name))) {
    onFile(`spool/${name}`);
    damages.push(...(await inspectLines(join(directory, name), `spool/${name}`, isRequestLine)).damages);
  }
  for (const name of names.filter(
    name => name === SEQUENCES_FILE || /^(clean-stop|undelivered)\.json$|\.erased$/.test(name),
  ))
    if (parseJson(await readFile(join(directory, name), 'utf8')) === undefined)
      damages.push({ file: `spool/${name}`, place: '', problem: 'it is not JSON' });
  return { records, damages };
}

function inspectSegment(file: string, data: Buffer, completeBytes: number): Inspection & SegmentSequences {
  const { blocks, ranges, tornBytes } = scanSegment(data, completeBytes);
  const damages: Damage[] = [];
  const report = (start: number, end: number, problem: string) =>
    damages.push({ file, place: byteRange(start, end), problem });
  const isShort = isTooShort(data.length, completeBytes);
  let missingFrom = data.length;
  for (const { start, bytes } of ranges)
    if (isShort && start + bytes.length === data.length)
      missingFrom = start; // the rest of a block that was cut
    else
      report(
        start,
        start + bytes.length,
        'the checksum of a block does not match, or its header cannot be read',
      );
  if (isShort)
    report(missingFrom, completeBytes, 'blocks are missing: the file is shorter than at the last clean stop');
  if (tornBytes > 0)
    report(
      data.length - tornBytes,
      data.length,
      'an unfinished write that was not acknowledged, or a damaged block: the last process did not stop cleanly',
    );
  const sequences = { startSequences: new Map<LogKind, number>(), endSequences: new Map<LogKind, number>() };
  let records = 0;
  for (const block of blocks) {
    records += block.count;
    trackBlock(sequences, block);
    if (block.formatVersion !== LINE_FORMAT_VERSION)
      report(
        block.offset,
        block.offset + block.blockBytes,
        `the line format ${block.formatVersion} belongs to another version of dendro`,
      );
  }
  return { records, damages, ...sequences };
}

async function inspectQuarantine(dataDirectory: string, onFile: (file: string) => void): Promise<Inspection> {
  const damages: Damage[] = [];
  let records = 0;
  for (const name of QUARANTINE_FILES) {
    if (!existsSync(join(dataDirectory, name))) continue;
    onFile(name);
    const found = await inspectLines(join(dataDirectory, name), name, isQuarantineLine);
    records += found.records;
    damages.push(...found.damages);
  }
  return { records, damages };
}

function isQuarantineLine(line: string): boolean {
  return parseQuarantined(parseJson(line), 0) !== undefined;
}

function isRequestLine(line: string): boolean {
  return parseRequestLine(line) !== undefined;
}

/** Reads a file of lines. Lines for which `isIntact` returns false are reported. */
async function inspectLines(
  path: string,
  file: string,
  isIntact: (line: string) => boolean,
): Promise<Inspection> {
  const damages: Damage[] = [];
  let records = 0;
  const data = await readFile(path);
  for (let start = 0, next = 0; start < data.length; start = next) {
    const newline = data.indexOf(NEWLINE, start);
    next = newline === -1 ? data.length : newline + 1;
    const line = data.subarray(start, newline === -1 ? data.length : newline);
    // Decoding replaces invalid bytes, which would hide them.
    const text = line.toString('utf8');
    if (Buffer.from(text).equals(line) && isIntact(text)) records++;
    else damages.push({ file, place: byteRange(start, next), problem: 'a line cannot be read' });
  }
  return { records, damages };
}
