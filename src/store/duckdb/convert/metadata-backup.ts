// Restores an old store after a power cut during a checkpoint. A checkpoint overwrote metadata blocks of the file in place. If one of
// these writes is torn, DuckDB refuses to open the file. So the store saved the blocks in a backup file before each checkpoint.
import { existsSync } from 'node:fs';
import { type FileHandle, open, readFile, rm } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { readAt } from '../../../system/open-file.ts';

/** Three headers of 4 KiB are before the first block. The second and third have the number of the checkpoint that wrote them. */
const HEADER_BYTES = 4096;
const FIRST_BLOCK_OFFSET = 3 * HEADER_BYTES;
const CHECKPOINT_NUMBER_OFFSET = 8;
const NEWLINE = 0x0a;
/** The checksum at the start of the backup has this many hexadecimal digits. */
const CHECKSUM_BYTES = 8;

/** The first line of the backup, after its checksum. The blocks follow. The names are part of the on-disk format. */
interface BackupHeader {
  /** The number of the last completed checkpoint. */
  readonly checkpoint: string;
  readonly blockBytes: number;
  /** The ids of the saved blocks. */
  readonly blocks: readonly number[];
}

export function metadataBackupOf(file: string): string {
  return `${file}.metadata-backup`;
}

/** Call it before DuckDB opens the file. The caller must hold the lock of the data directory. */
export async function restoreMetadata(file: string): Promise<void> {
  const backup = await readBackup(file);
  if (backup === undefined) return;
  const { blockBytes, blocks } = backup.header;
  const handle = await open(file, 'r+');
  try {
    if (await isBackupCurrent(handle, backup.header))
      for (const [index, block] of blocks.entries())
        await writeAt(
          handle,
          backup.data.subarray(index * blockBytes, (index + 1) * blockBytes),
          FIRST_BLOCK_OFFSET + block * blockBytes,
        );
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rm(metadataBackupOf(file), { force: true });
}

async function readBackup(
  file: string,
): Promise<{ readonly header: BackupHeader; readonly data: Buffer } | undefined> {
  const backup = metadataBackupOf(file);
  if (!existsSync(backup)) return undefined;
  const content = await readFile(backup);
  const bytes = content.subarray(CHECKSUM_BYTES);
  // Differs only after a disk fault: the backup is replaced atomically.
  if (!checksumOf(bytes).equals(content.subarray(0, CHECKSUM_BYTES))) return undefined;
  const headerEnd = bytes.indexOf(NEWLINE) + 1;
  const header = JSON.parse(bytes.toString('utf8', 0, headerEnd)) as BackupHeader;
  return { header, data: bytes.subarray(headerEnd) };
}

/** Whether no checkpoint was completed since the backup was saved. */
async function isBackupCurrent(handle: FileHandle, { checkpoint }: BackupHeader): Promise<boolean> {
  return String(await readCheckpointNumber(handle)) === checkpoint;
}

/** Continues after a short write. */
async function writeAt(handle: FileHandle, data: Buffer, offset: number): Promise<void> {
  for (let written = 0; written < data.length; ) {
    const { bytesWritten } = await handle.write(data, written, data.length - written, offset + written);
    written += bytesWritten;
  }
}

/** DuckDB writes the two headers in turn, and uses the one with the higher number. */
async function readCheckpointNumber({ fd }: FileHandle): Promise<bigint> {
  const headers = await readAt(fd, HEADER_BYTES, 2 * HEADER_BYTES);
  const first = headers.readBigUInt64LE(CHECKPOINT_NUMBER_OFFSET);
  const second = headers.readBigUInt64LE(HEADER_BYTES + CHECKPOINT_NUMBER_OFFSET);
  return first > second ? first : second;
}

function checksumOf(bytes: Buffer): Buffer {
  return Buffer.from(crc32(bytes).toString(16).padStart(CHECKSUM_BYTES, '0'));
}
