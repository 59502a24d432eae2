// Keeps rejected records with their reasons for the operator (format: logs/quarantine-line.ts). The size is bounded: a full
// file replaces the older one, and a new file starts.
import { appendFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readLogLine } from '../domain/log-line.ts';
import { type ParseResult, parseLine } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import type { Observe } from '../observe/event.ts';
import type { StoreCallbacks } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { Mutex } from '../system/mutex.ts';

const MAX_FILE_BYTES = 32 * 1024 * 1024;

export class Quarantine {
  readonly #file: string;
  readonly #olderFile: string;
  readonly #maxBytes: number;
  readonly #observe: Observe;
  readonly #mutex = new Mutex();
  /** Size of the file. Undefined before the first write. */
  #bytes: number | undefined;
  /** Length of the lines that wait to be written. */
  #queuedLength = 0;

  constructor(dataDirectory: string, observe: Observe, maxBytes = MAX_FILE_BYTES) {
    this.#file = join(dataDirectory, 'quarantine.ndjson');
    this.#olderFile = join(dataDirectory, 'quarantine.older.ndjson');
    this.#maxBytes = maxBytes;
    this.#observe = observe;
  }

  /** Writes lines in the background, so that no sender waits. A failure is reported as an event, and the lines are lost. */
  keep(lines: string): void {
    if (lines === '') return;
    if (this.#queuedLength > this.#maxBytes) {
      const error = new Error(
        'the quarantine queue is full: records are rejected faster than the disk writes',
      );
      this.#observe({ type: 'quarantine_failed', error });
      return;
    }
    this.#queuedLength += lines.length;
    void this.#mutex.run(async () => {
      try {
        await this.#write(Buffer.from(lines));
      } catch (error) {
        this.#observe({ type: 'quarantine_failed', error });
      }
      this.#queuedLength -= lines.length;
    });
  }

  /** Resolves when all lines are written. */
  idle(): Promise<void> {
    return this.#mutex.idle();
  }

  async #write(lines: Buffer): Promise<void> {
    this.#bytes ??= await readSize(this.#file);
    if (this.#bytes > 0 && this.#bytes + lines.length > this.#maxBytes) {
      await rename(this.#file, this.#olderFile);
      this.#bytes = 0;
    }
    await appendFile(this.#file, lines, { mode: 0o600 });
    this.#bytes += lines.length;
  }
}

/** Creates events for `openStore`: a record that the store rejects goes to the quarantine. */
export function createStoreCallbacks(quarantine: Quarantine, clock: Clock, observe: Observe): StoreCallbacks {
  return {
    recordRejected: ({ kind, line, reason }) => {
      observe({ type: 'record_rejected_by_store', kind, reason });
      const rejection = { code: 'rejected_by_store', message: reason } as const;
      quarantine.keep(formatQuarantineLine(kind, Number(clock()), toSentRecord(line), rejection));
    },
    flushFailed: (kind, error) => observe({ type: 'flush_failed', kind, error }),
  };
}

/** Converts a log line of the spool back to the format that senders use, so that `dendro ingest` can read it. */
function toSentRecord(line: string): ParseResult {
  const columns = readLogLine(line);
  const metadata = parseLine(String(columns?.['metadata']), 0);
  if (columns === undefined || 'rejection' in metadata)
    return { index: 0, line, rejection: { code: 'invalid_json', message: '' } };
  const { id, timestamp, project, event_message } = columns as Record<string, unknown>;
  return { index: 0, value: { id, timestamp, project, event_message, metadata: metadata.value } };
}

async function readSize(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch {
    return 0;
  }
}
