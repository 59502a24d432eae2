// Reads the body of a request up to a limit.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';

interface Limits {
  readonly maxBytes: number;
  readonly tooLarge: () => DendroError;
  /** Called before bytes are read into memory; may throw to reject the request. */
  readonly reserve: (bytes: number) => void;
}

export async function readRequestBody(rawRequest: IncomingMessage, limits: Limits): Promise<Buffer> {
  const { maxBytes, tooLarge, reserve } = limits;
  const declared = Number(rawRequest.headers['content-length']);
  if (declared > maxBytes) throw tooLarge();
  if (declared > 0) reserve(declared);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of rawRequest.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge();
      if (Number.isNaN(declared)) reserve(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    // Drains the rest of the body, or the connection's next request would wait behind it. Node drains only a body that
    // nothing has started to read.
    rawRequest.resume();
    if (error instanceof DendroError) throw error;
    throw new DendroError('invalid_body', 'the connection closed before the whole body was received', {
      cause: error,
    });
  }
  return Buffer.concat(chunks, bytes);
}
