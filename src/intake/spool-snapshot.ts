// The content of the spool at one moment, for a backup: segments up to their durable length, the completely written files of the
// idempotency log, and the next sequence numbers. The files stay open, so the spool can delete them meanwhile.
import { basename } from 'node:path';
import type { LogKind } from '../domain/log-columns.ts';
import { OpenFile } from '../system/open-file.ts';
import { bufferFile, type TarFile } from '../system/tar.ts';
import type { SpoolBlock } from './spool-block.ts';
import { DamagedBlockError, readBlocks } from './spool-segment.ts';
import { SEQUENCES_FILE } from './spool-state.ts';

export type OnBlocks = (blocks: readonly SpoolBlock[]) => void;

export interface SpoolSnapshot {
  /** Their paths start with `spool/`. Reading a segment checks its blocks, and throws if one is damaged. */
  readonly files: readonly TarFile[];
  close(): Promise<void>;
}

const READ_BYTES = 1024 * 1024;

/** `onBlocks` gets the blocks of a segment while its file is read. */
export function openSpoolSnapshot(
  segments: readonly { readonly path: string; readonly validBytes: number }[],
  idempotencyLogFiles: readonly string[],
  sequences: string,
  onBlocks: OnBlocks,
): SpoolSnapshot {
  const opened: OpenFile[] = [];
  const openFile = (path: string, bytes?: number) => {
    const file = new OpenFile(path, `spool/${basename(path)}`, bytes);
    opened.push(file);
    return file;
  };
  const snapshot = {
    files: [] as TarFile[],
    close: async () => {
      await Promise.all(opened.map(file => file.close()));
    },
  };
  async function* readContent(file: OpenFile): AsyncGenerator<Buffer> {
    for await (const { blocks, data } of readSegment(file)) {
      onBlocks(blocks);
      yield data;
    }
  }
  try {
    for (const path of idempotencyLogFiles) snapshot.files.push(openFile(path));
    for (const { path, validBytes } of segments) {
      const file = openFile(path, validBytes);
      snapshot.files.push({ path: file.path, bytes: file.bytes, content: () => readContent(file) });
    }
    snapshot.files.push(bufferFile(`spool/${SEQUENCES_FILE}`, sequences));
    return snapshot;
  } catch (error) {
    void snapshot.close();
    throw error;
  }
}

/** Reads all blocks of a segment. Throws if one is damaged. */
export async function* readSegment({
  path,
  bytes,
  readAt,
}: Pick<OpenFile, 'path' | 'bytes' | 'readAt'>): AsyncGenerator<{
  readonly blocks: readonly SpoolBlock[];
  readonly data: Buffer;
}> {
  for (let offset = 0; offset < bytes; ) {
    const { blocks, data } = await readBlocks(readAt, offset, READ_BYTES, bytes);
    if (blocks.length === 0) throw new DamagedBlockError(path, offset);
    offset += data.length;
    yield { blocks, data };
  }
}

/** Counts the records of each kind in the spool that the store does not have on disk (`Store.durableUpTo`). */
export class SpooledCounts {
  readonly counts = new Map<LogKind, number>();
  readonly #durableUpTo: (kind: LogKind) => number;

  constructor(durableUpTo: (kind: LogKind) => number) {
    this.#durableUpTo = durableUpTo;
  }

  readonly add: OnBlocks = blocks => {
    for (const { kind, firstSequence, count } of blocks) {
      const missing = Math.min(count, firstSequence + count - this.#durableUpTo(kind));
      if (missing > 0) this.counts.set(kind, (this.counts.get(kind) ?? 0) + missing);
    }
  };
}
