// Keeps a file open, so that the bytes that it had when it was opened can be read later, even if the file is then deleted,
// renamed or appended to.
import { createHash } from 'node:crypto';
import { close, fstatSync, openSync, read } from 'node:fs';
import { promisify } from 'node:util';
import type { TarFile } from './tar.ts';

const readDescriptor = promisify(read);
const closeDescriptor = promisify(close);

const CHUNK_BYTES = 1024 * 1024;

/** Returns `length` bytes, or fewer at the end of the file. */
export async function readAt(descriptor: number, offset: number, length: number): Promise<Buffer> {
  const data = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await readDescriptor(descriptor, data, filled, length - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return data.subarray(0, filled);
}

/** Reads the first `bytes` bytes, in chunks. Throws if the source has fewer. */
export async function* readChunks(
  readAtOffset: (offset: number, length: number) => Promise<Buffer>,
  bytes: number,
): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < bytes; ) {
    const chunk = await readAtOffset(offset, Math.min(CHUNK_BYTES, bytes - offset));
    if (chunk.length === 0) throw new Error(`the file ends after ${offset} bytes instead of ${bytes}`);
    offset += chunk.length;
    yield chunk;
  }
}

export class OpenFile implements TarFile {
  readonly path: string;
  readonly bytes: number;
  readonly #descriptor: number;
  #closing: Promise<void> | undefined;

  /**
   * `file` is the path on disk, and `path` the name in the tar archive. `bytes` is how much is read, from the start; by default,
   * the current size. Opens synchronously, so that several files can be opened at one moment.
   */
  constructor(file: string, path: string, bytes?: number) {
    this.path = path;
    this.#descriptor = openSync(file, 'r');
    this.bytes = bytes ?? fstatSync(this.#descriptor).size;
  }

  /** Returns undefined if the file does not exist. */
  static ifExists(file: string, path: string): OpenFile | undefined {
    try {
      return new OpenFile(file, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  readonly readAt = (offset: number, length: number): Promise<Buffer> =>
    this.#closing === undefined
      ? readAt(this.#descriptor, offset, length)
      : Promise.reject(new Error(`${this.path} is closed`));

  content(): AsyncIterable<Uint8Array> {
    return readChunks(this.readAt, this.bytes);
  }

  close(): Promise<void> {
    this.#closing ??= closeDescriptor(this.#descriptor);
    return this.#closing;
  }
}

export async function hashFile(
  file: string,
  onRead: (bytes: number) => Promise<void> | void = () => {},
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const opened = new OpenFile(file, file);
  try {
    const hash = createHash('sha256');
    for await (const chunk of opened.content()) {
      hash.update(chunk);
      await onRead(chunk.length);
    }
    return { bytes: opened.bytes, sha256: hash.digest('hex') };
  } finally {
    await opened.close();
  }
}
