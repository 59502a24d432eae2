// Damages a DuckDB file as a broken disk or a broken encoder would: changes bytes of a block, with or without its checksum.
import { closeSync, openSync, readSync, writeSync } from 'node:fs';

const HEADERS_BYTES = 3 * 4096;
/** Where a header of the database has the size of its blocks. */
const BLOCK_BYTES_OFFSET = 4096 + 40;
const CHECKSUM_BYTES = 8;
const MULTIPLIER = 0xbf58476d1ce4e5b9n;

/**
 * Replaces a text by another one of the same length, in all blocks. Returns how many times it was found. With `fixChecksum`, the
 * blocks get the checksum of their new content, so that DuckDB reads them without an error.
 */
export function replaceInBlocks(file: string, text: string, by: string, fixChecksum: boolean): number {
  const descriptor = openSync(file, 'r+');
  let found = 0;
  try {
    const blockBytes = readBlockBytes(descriptor);
    const block = Buffer.alloc(blockBytes);
    for (
      let offset = HEADERS_BYTES;
      readSync(descriptor, block, 0, blockBytes, offset) === blockBytes;
      offset += blockBytes
    ) {
      const before = found;
      for (let at = block.indexOf(text); at !== -1; at = block.indexOf(text, at + 1)) {
        block.write(by, at);
        found++;
      }
      if (found === before) continue;
      if (fixChecksum) block.writeBigUInt64LE(checksumOf(block));
      writeSync(descriptor, block, 0, blockBytes, offset);
    }
  } finally {
    closeSync(descriptor);
  }
  return found;
}

function readBlockBytes(descriptor: number): number {
  const number = Buffer.alloc(8);
  readSync(descriptor, number, 0, 8, BLOCK_BYTES_OFFSET);
  return Number(number.readBigUInt64LE());
}

/** The checksum of DuckDB: the exclusive or of all words, each multiplied by a constant. */
function checksumOf(block: Buffer): bigint {
  let checksum = 5381n;
  for (let offset = CHECKSUM_BYTES; offset < block.length; offset += 8)
    checksum ^= BigInt.asUintN(64, block.readBigUInt64LE(offset) * MULTIPLIER);
  return checksum;
}
