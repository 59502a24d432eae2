// Unpacks a body, never to more than it may hold.
import * as zlib from 'node:zlib';
import { DendroError } from '../domain/errors.ts';

/** After decompression. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

type Unpack = (body: Uint8Array, options: { maxOutputLength: number }) => Buffer;

const UNPACKERS: Readonly<Record<string, Unpack | undefined>> = {
  gzip: zlib.gunzipSync,
  'x-gzip': zlib.gunzipSync,
  deflate: (body, options) => (isZlib(body) ? zlib.inflateSync : zlib.inflateRawSync)(body, options),
  br: zlib.brotliDecompressSync,
  zstd: (zlib as { zstdDecompressSync?: Unpack }).zstdDecompressSync, // from Node 22.15 on
};

export const KNOWN_CODINGS: readonly string[] = ['gzip', 'deflate', 'br', 'zstd'].filter(
  coding => UNPACKERS[coding] !== undefined,
);

/** Throws `unsupported_media_type`, `payload_too_large` or `invalid_body`. */
export function decompress(body: Uint8Array, coding: string): Uint8Array {
  if (coding === '' || coding === 'identity') return body;
  const unpack = Object.hasOwn(UNPACKERS, coding) ? UNPACKERS[coding] : undefined;
  if (unpack === undefined)
    throw new DendroError(
      'unsupported_media_type',
      `the body's Content-Encoding is not known here; known are ${KNOWN_CODINGS.join(', ')}`,
    );
  try {
    return unpack(body, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge();
    throw new DendroError(
      'invalid_body',
      `the body is not ${coding}, or it ends too early: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

export function bodyTooLarge(): DendroError {
  return new DendroError(
    'payload_too_large',
    'the body is larger than 16 MiB, after decompression; send it in smaller batches',
  );
}

/** Senders write both the zlib form, which HTTP means by deflate, and the bare one. */
function isZlib(body: Uint8Array): boolean {
  const [first = 0, second = 0] = body;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}
