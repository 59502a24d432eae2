// The content of the spool at one moment, for a backup: segments up to their durable length, the completely written files of the
// idempotency log, and the next sequence numbers. The files stay open, so the spool can delete them meanwhile.
import { basename } from 'node:path';
import { OpenFile } from '../system/open-file.ts';
import { bufferFile, type TarFile } from '../system/tar.ts';
import type { SpoolBlock } from './spool-block.ts';
import { DamagedBlockError, readBlocks } from './spool-segment.ts';
import { SEQUENCES_FILE } from './spool-state.ts';

export interface SpoolSnapshot {
  /** Their paths start with `spool/`. */
  readonly files: readonly TarFile[];
  close(): Promise<void>;
}

const READ_BYTES = 1024 * 1024;

export function openSpoolSnapshot(
  segments: readonly { readonly path: string; readonly validBytes: number }[],
  idempotencyLogFiles: readonly string[],
  sequences: string,
): SpoolSnapshot {
  const opened: OpenFile[] = [];
  const openFile = (path: string, bytes?: number) => {
    opened.push(new OpenFile(path, `spool/${basename(path)}`, bytes));
  };
  const close = async () => {
    await Promise.all(opened.map(file => file.close()));
  };
  try {
    for (const path of idempotencyLogFiles) openFile(path);
    for (const { path, validBytes } of segments) openFile(path, validBytes);
    return { files: [...opened, bufferFile(`spool/${SEQUENCES_FILE}`, sequences)], close };
  } catch (error) {
    void close();
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
