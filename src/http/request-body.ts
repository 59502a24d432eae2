// Reads the body of a request, no more of it than is allowed.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';

interface Limits {
  readonly maxBytes: number;
  readonly tooLarge: () => DendroError;
  /** Takes a place in memory for bytes that come; may throw. */
  readonly reserve: (bytes: number) => void;
}

export async function readRequestBody(request: IncomingMessage, limits: Limits): Promise<Buffer> {
  const { maxBytes, tooLarge, reserve } = limits;
  const declared = Number(request.headers['content-length']);
  if (declared > maxBytes) throw tooLarge();
  if (declared > 0) reserve(declared);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge();
      if (Number.isNaN(declared)) reserve(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    // The rest is read and dropped, or the connection's next request would wait behind it. Node does that by itself only
    // for a body that nobody has begun to read.
    request.resume();
    if (error instanceof DendroError) throw error;
    throw new DendroError('invalid_body', 'the body broke off before its end', { cause: error });
  }
  return Buffer.concat(chunks, bytes);
}
