// Writes and reads tar archives (ustar) of regular files, as a stream. Any tar program can read them. An archive that contains
// anything else, such as a link or a directory, is refused.
import { buffer } from 'node:stream/consumers';

export interface TarFile {
  /** A relative path with `/`, at most 100 bytes. */
  readonly path: string;
  readonly bytes: number;
  /** The content, exactly `bytes` long. Can be read once. */
  content(): AsyncIterable<Uint8Array>;
}

const BLOCK_BYTES = 512;
/** The largest size that 11 octal digits can express: 8 GiB - 1. A larger one is written in base 256, as GNU tar does. */
const MAX_OCTAL_SIZE = 0o77777777777;

export function bufferFile(path: string, content: string | Uint8Array): TarFile {
  const data = Buffer.from(content);
  return {
    path,
    bytes: data.length,
    async *content() {
      yield data;
    },
  };
}

/** Requests each file after writing the one before it. Throws if the content of a file does not have its declared size. */
export async function* writeTar(
  files: AsyncIterable<TarFile> | Iterable<TarFile>,
  mtimeSeconds: number,
): AsyncGenerator<Uint8Array> {
  for await (const file of files) {
    yield encodeHeader(file, mtimeSeconds);
    let written = 0;
    for await (const chunk of file.content()) {
      written += chunk.length;
      yield chunk;
    }
    if (written !== file.bytes) throw new Error(`${file.path} has ${written} bytes instead of ${file.bytes}`);
    if (written % BLOCK_BYTES > 0) yield Buffer.alloc(BLOCK_BYTES - (written % BLOCK_BYTES));
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

/**
 * Yields the files of an archive. The caller must read the content of each file before it takes the next one. Throws if the
 * archive is truncated, or if it contains anything but regular files.
 */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarFile> {
  const iterator = chunks[Symbol.asyncIterator]();
  let rest: Uint8Array = Buffer.alloc(0);
  /** Returns 1 to `maxBytes` bytes. */
  const takeUpTo = async (maxBytes: number): Promise<Uint8Array> => {
    while (rest.length === 0) {
      const { done, value } = await iterator.next();
      if (done) throw new Error('the archive is truncated');
      rest = value;
    }
    const taken = rest.subarray(0, maxBytes);
    rest = rest.subarray(taken.length);
    return taken;
  };
  const take = async function* (bytes: number): AsyncGenerator<Uint8Array> {
    for (let left = bytes; left > 0; ) {
      const chunk = await takeUpTo(left);
      left -= chunk.length;
      yield chunk;
    }
  };
  const takeBlock = (bytes = BLOCK_BYTES) => buffer(take(bytes));
  try {
    for (;;) {
      const header = await takeBlock();
      if (header.every(byte => byte === 0)) break;
      const { path, bytes } = decodeHeader(header);
      yield { path, bytes, content: () => take(bytes) };
      await takeBlock((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES);
    }
    await takeBlock(); // an archive ends with two empty blocks; this is the second
  } finally {
    await iterator.return?.();
  }
}

function encodeHeader({ path, bytes }: TarFile, mtimeSeconds: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`the path ${path} is too long for a tar archive`);
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(path, 0);
  header.write('0000600\0', 100); // mode
  header.write('0000000\0', 108); // user
  header.write('0000000\0', 116); // group
  if (bytes <= MAX_OCTAL_SIZE) header.write(`${octal(bytes, 11)}\0`, 124);
  else {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(bytes), 128);
  }
  header.write(`${octal(mtimeSeconds, 11)}\0`, 136);
  header.write('        0', 148); // an empty checksum (8 spaces) and the type of a regular file
  header.write('ustar\x0000', 257); // `ustar`, the byte \x00, and the version `00`
  header.write(`${octal(checksum(header), 6)}\0 `, 148);
  return header;
}

function decodeHeader(header: Buffer): { path: string; bytes: number } {
  const stored = Number.parseInt(header.toString('latin1', 148, 156), 8);
  const expected = checksum(
    Buffer.concat([header.subarray(0, 148), Buffer.alloc(8, ' '), header.subarray(156)]),
  );
  if (stored !== expected) throw new Error('the archive is damaged: a header has a wrong checksum');
  const path = readText(header, 0, 100);
  const type = readText(header, 156, 1);
  const prefix = readText(header, 345, 155);
  if ((type !== '0' && type !== '') || prefix !== '')
    throw new Error(
      `the archive contains ${JSON.stringify(path)}, which is not a regular file, or has a path longer than 100 bytes`,
    );
  const isBase256 = header[124] === 0x80;
  const bytes = isBase256
    ? Number(header.readBigUInt64BE(128))
    : Number.parseInt(readText(header, 124, 12).trim(), 8);
  if (!Number.isSafeInteger(bytes))
    throw new Error(`the archive has no valid size for ${JSON.stringify(path)}`);
  return { path, bytes };
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

function checksum(header: Buffer): number {
  return header.reduce((sum, byte) => sum + byte, 0);
}

function readText(header: Buffer, start: number, length: number): string {
  const field = header.toString('utf8', start, start + length);
  const end = field.indexOf('\0');
  return end === -1 ? field : field.slice(0, end);
}
