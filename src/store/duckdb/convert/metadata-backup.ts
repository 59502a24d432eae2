// Protects the file against a power cut during a checkpoint. DuckDB keeps its metadata in blocks of 256 KiB, which a checkpoint
// overwrites in place. If one of these writes is torn, DuckDB refuses to open the file. So the metadata blocks that the
// checkpoint may overwrite are first saved in a backup file. The next start writes them back, unless the checkpoint was
// completed.
import { existsSync } from 'node:fs';
import { type FileHandle, open, readFile, rm } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { writeFileDurably } from '../../../system/files.ts';
import { readAt } from '../../../system/open-file.ts';
import type { DuckDBConnection } from '../driver.ts';

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

/** Reads bytes of the file; fewer at its end. */
type ReadAt = (offset: number, length: number) => Promise<Buffer>;

/** Must be called by the holder of the file mutex, before a checkpoint. */
export async function saveMetadata(connection: DuckDBConnection, file: string, read: ReadAt): Promise<void> {
  const size = await connection.runAndReadAll(
    "select block_size from pragma_database_size() where database_name = 'logs'",
  );
  // DuckDB writes new metadata only into blocks that have free space, so full blocks never change. Most metadata blocks of a
  // large file are full.
  const writable = await connection.runAndReadAll(
    "select block_id from pragma_metadata_info('logs') where free_blocks > 0 order by 1",
  );
  const blockBytes = Number(size.value(0, 0));
  const header: BackupHeader = {
    checkpoint: String(await readCheckpointNumber(read)),
    blockBytes,
    blocks: writable.getRows().map(([block]) => Number(block)),
  };
  const content = [Buffer.from(`${JSON.stringify(header)}\n`)];
  for (const block of header.blocks) {
    const saved = Buffer.alloc(blockBytes);
    (await read(FIRST_BLOCK_OFFSET + block * blockBytes, blockBytes)).copy(saved);
    content.push(saved);
  }
  const bytes = Buffer.concat(content);
  await writeFileDurably(metadataBackupOf(file), Buffer.concat([checksumOf(bytes), bytes]));
}

export async function removeMetadataBackup(file: string): Promise<void> {
  await rm(metadataBackupOf(file), { force: true });
}

/** Call it before DuckDB opens the file. The caller must hold the lock of the data directory. */
export async function restoreMetadata(file: string): Promise<void> {
  if (!existsSync(file)) return;
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
  await removeMetadataBackup(file);
}

/** Whether `restoreMetadata` would restore blocks. Only reads. */
export async function isCheckpointUnfinished(file: string): Promise<boolean> {
  const backup = await readBackup(file);
  if (backup === undefined) return false;
  const handle = await open(file, 'r');
  try {
    return await isBackupCurrent(handle, backup.header);
  } finally {
    await handle.close();
  }
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
async function isBackupCurrent({ fd }: FileHandle, { checkpoint }: BackupHeader): Promise<boolean> {
  const number = await readCheckpointNumber((offset, length) => readAt(fd, offset, length));
  return String(number) === checkpoint;
}

/** Continues after a short write. */
async function writeAt(handle: FileHandle, data: Buffer, offset: number): Promise<void> {
  for (let written = 0; written < data.length; ) {
    const { bytesWritten } = await handle.write(data, written, data.length - written, offset + written);
    written += bytesWritten;
  }
}

/** DuckDB writes the two headers in turn, and uses the one with the higher number. */
async function readCheckpointNumber(read: ReadAt): Promise<bigint> {
  const headers = await read(HEADER_BYTES, 2 * HEADER_BYTES);
  const first = headers.readBigUInt64LE(CHECKPOINT_NUMBER_OFFSET);
  const second = headers.readBigUInt64LE(HEADER_BYTES + CHECKPOINT_NUMBER_OFFSET);
  return first > second ? first : second;
}

function checksumOf(bytes: Buffer): Buffer {
  return Buffer.from(crc32(bytes).toString(16).padStart(CHECKSUM_BYTES, '0'));
}
