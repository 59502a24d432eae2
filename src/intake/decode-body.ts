// Decodes a request body: decompresses it up to a size limit, and decodes its text up to a limit on the number of values.
import * as zlib from 'node:zlib';
import { DendroError } from '../domain/errors.ts';
import { MAX_BODY_BYTES } from '../domain/limits.ts';
import { tooManyValues } from '../logs/parse.ts';
import { quote } from '../logs/rejection.ts';

/** The text formats for which `decodeText` limits the number of values. OTLP JSON counts as `json`. */
type TextFormat = 'json' | 'ndjson';

export type BodyFormat = TextFormat | 'otlp-json' | 'otlp-protobuf';

/** With `info`, these functions of Node also return the engine, whose `bytesWritten` are the bytes that it has consumed. */
type Decompress = (
  body: Uint8Array,
  options: { maxOutputLength: number; info: true },
) => { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };

const gunzip = zlib.gunzipSync as unknown as Decompress;
const inflate = zlib.inflateSync as unknown as Decompress;
const inflateRaw = zlib.inflateRawSync as unknown as Decompress;

const DECOMPRESSORS: Readonly<Record<string, Decompress | undefined>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  deflate: (body, options) => (hasZlibHeader(body) ? inflate : inflateRaw)(body, options),
  br: zlib.brotliDecompressSync as unknown as Decompress,
  zstd: (zlib as { zstdDecompressSync?: Decompress }).zstdDecompressSync, // since Node 22.15
};

const SUPPORTED_CODINGS: readonly string[] = ['gzip', 'deflate', 'br', 'zstd'].filter(
  contentCoding => DECOMPRESSORS[contentCoding] !== undefined,
);

/** Throws `unsupported_media_type`, `payload_too_large` or `invalid_body`. */
export function decompress(body: Uint8Array, contentCoding: string): Uint8Array {
  if (contentCoding === '' || contentCoding === 'identity') return body;
  const decompressor = Object.hasOwn(DECOMPRESSORS, contentCoding) ? DECOMPRESSORS[contentCoding] : undefined;
  if (decompressor === undefined)
    throw new DendroError(
      'unsupported_media_type',
      `Content-Encoding ${quote(contentCoding)} is not supported; supported: ${SUPPORTED_CODINGS.join(', ')}`,
    );
  try {
    return decompressAll(decompressor, body, contentCoding);
  } catch (error) {
    if (error instanceof DendroError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge();
    throw new DendroError(
      'invalid_body',
      `the body is not valid ${contentCoding} data, or it is truncated: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/**
 * Decompresses the whole body. Node alone does not: it stops after the first zstd frame, and with other codings it ignores what
 * follows the compressed data.
 */
function decompressAll(decompressor: Decompress, body: Uint8Array, contentCoding: string): Uint8Array {
  const frames: Buffer[] = [];
  let bytes = 0;
  let rest = body;
  do {
    const maxOutputLength = Math.max(1, MAX_BODY_BYTES - bytes);
    const { buffer, engine } = decompressor(rest, { maxOutputLength, info: true });
    frames.push(buffer);
    bytes += buffer.length;
    rest = rest.subarray(engine.bytesWritten);
  } while (contentCoding === 'zstd' && rest.length > 0);
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  if (rest.some(byte => byte !== 0)) throw new Error('other data follows its end'); // zeros can be the padding of gzip data
  return frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames);
}

export function bodyTooLarge(): DendroError {
  return new DendroError(
    'payload_too_large',
    'the body is larger than 16 MiB, as sent or after decompression; send smaller batches',
  );
}

/** `deflate` in HTTP means deflate data in a zlib wrapper, but some senders omit the wrapper. */
function hasZlibHeader(body: Uint8Array): boolean {
  const [first = 0, second = 0] = body;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

/**
 * For each format, the characters by which values are counted, and how many of them a text may contain. At 16 MiB this allows one
 * JSON value per 4 bytes, or one line per 16 bytes; real records are much longer. The limits exist because a text of empty arrays
 * takes 20 times its length in memory, and a worker that runs out of memory can crash the whole process. Also, millions of invalid
 * lines take minutes to parse.
 */
const VALUE_LIMITS: Readonly<Record<TextFormat, { readonly counted: string; readonly max: number }>> = {
  json: { counted: '[{,', max: 4 * 1024 * 1024 },
  ndjson: { counted: '\n', max: 1024 * 1024 },
};

/** Decodes UTF-8 and removes a byte order mark. Throws `payload_too_large` if the text may contain too many values. */
export function decodeText(data: Uint8Array, format: TextFormat): string {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    .toString('utf8')
    .replace(/^\ufeff/, '');
  if (mayHaveTooManyValues(text, format)) throw tooManyValues();
  return text;
}

/** Counts without parsing, so characters inside strings count too. */
function mayHaveTooManyValues(text: string, format: TextFormat): boolean {
  const { counted, max } = VALUE_LIMITS[format];
  if (text.length <= max) return false;
  let count = 0;
  for (const character of counted)
    for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1))
      if (++count > max) return true;
  return false;
}
