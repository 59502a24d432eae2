// Keeps rejected records with their reasons in a file for the operator (format: logs/quarantine-line.ts). Rotated at 32 MiB;
// one old file is kept.
import { type FileHandle, open, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_QUARANTINE_FILE_BYTES } from '../domain/limits.ts';
import { readLogLine } from '../domain/log-line.ts';
import { type ParseResult, parseLine } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import type { Observe } from '../observe/event.ts';
import type { StoreCallbacks } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { writeFileDurably } from '../system/files.ts';
import { Mutex } from '../system/mutex.ts';
import { OpenFile } from '../system/open-file.ts';

const FILE = 'quarantine.ndjson';
const OLDER_FILE = 'quarantine.older.ndjson';
export const QUARANTINE_FILES: readonly string[] = [OLDER_FILE, FILE];

const NEWLINE = 0x0a;

export class Quarantine {
  readonly #file: string;
  readonly #olderFile: string;
  readonly #maxFileBytes: number;
  readonly #observe: Observe;
  readonly #mutex = new Mutex();
  /** Length of the lines that are waiting to be written. */
  #queuedLength = 0;

  constructor(dataDirectory: string, observe: Observe, maxFileBytes = MAX_QUARANTINE_FILE_BYTES) {
    this.#file = join(dataDirectory, FILE);
    this.#olderFile = join(dataDirectory, OLDER_FILE);
    this.#maxFileBytes = maxFileBytes;
    this.#observe = observe;
  }

  /** Writes lines in the background, so that no sender waits. If a write fails, an event reports it and its lines are lost. */
  append(lines: string): void {
    if (lines === '') return;
    if (this.#queuedLength > this.#maxFileBytes) {
      const error = new Error(
        'the quarantine queue is full: records are rejected faster than the disk can write them',
      );
      this.#observe({ type: 'quarantine_failed', error });
      return;
    }
    this.#queuedLength += lines.length;
    void this.#mutex.run(async () => {
      try {
        await this.#write(Buffer.from(lines));
        this.#observe({ type: 'records_quarantined', count: countLines(lines) });
      } catch (error) {
        this.#observe({ type: 'quarantine_failed', error });
      }
      this.#queuedLength -= lines.length;
    });
  }

  /** Waits until all lines that were appended before this call are written, then opens the files. The caller closes them. */
  openFiles(): Promise<OpenFile[]> {
    return this.#mutex.run(async () => {
      const older = OpenFile.ifExists(this.#olderFile, OLDER_FILE);
      try {
        return [older ?? [], OpenFile.ifExists(this.#file, FILE) ?? []].flat();
      } catch (error) {
        await older?.close();
        throw error;
      }
    });
  }

  /** Resolves when all lines are written. */
  idle(): Promise<void> {
    return this.#mutex.idle();
  }

  /** Removes the lines for which `matches` returns true from both files. Returns how many. */
  remove(matches: (line: string) => boolean): Promise<number> {
    return this.#mutex.run(async () => {
      let removed = 0;
      for (const file of [this.#file, this.#olderFile]) {
        const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return '';
          throw error;
        });
        const lines = content.split('\n');
        const kept = lines.filter(line => line === '' || !matches(line));
        if (kept.length === lines.length) continue;
        await writeFileDurably(file, kept.join('\n'));
        removed += lines.length - kept.length;
      }
      return removed;
    });
  }

  async #write(lines: Buffer): Promise<void> {
    // The size is read for each write, because the operator can move the file away at any time.
    const bytes = (await stat(this.#file).catch(() => undefined))?.size ?? 0;
    if (bytes > 0 && bytes + lines.length > this.#maxFileBytes) await rename(this.#file, this.#olderFile);
    const file = await open(this.#file, 'a+', 0o600);
    try {
      // If a full disk or a crash has cut off the last line, the new lines must not continue it.
      await file.appendFile(
        (await endsInsideLine(file)) ? Buffer.concat([Buffer.of(NEWLINE), lines]) : lines,
      );
    } finally {
      await file.close();
    }
  }
}

function countLines(text: string): number {
  let count = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) count++;
  return count;
}

/** Callbacks for a store: a record that it rejects goes to the quarantine. */
export function createStoreCallbacks(quarantine: Quarantine, clock: Clock, observe: Observe): StoreCallbacks {
  return {
    observe,
    recordRejected: ({ kind, line, reason }) => {
      observe({ type: 'record_rejected_by_store', kind, reason });
      const rejection = { code: 'rejected_by_store', message: reason } as const;
      quarantine.append(formatQuarantineLine(kind, Number(clock()), parseSpooledLine(line), rejection));
    },
  };
}

/** Parses a log line of the spool into a record as senders write it, so that `dendro ingest` can read it back. */
export function parseSpooledLine(line: string): ParseResult {
  const columns = readLogLine(line);
  const metadata = parseLine(String(columns?.['metadata']), 0);
  if (columns === undefined || 'rejection' in metadata)
    return { index: 0, line, rejection: { code: 'invalid_json', message: '' } }; // callers ignore the rejection's text
  const { id, timestamp, project, event_message } = columns as Record<string, unknown>;
  return { index: 0, value: { id, timestamp, project, event_message, metadata: metadata.value } };
}

async function endsInsideLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
  return bytesRead > 0 && buffer[0] !== NEWLINE;
}
