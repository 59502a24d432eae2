// Reads the body of a request up to a size limit.
import type { IncomingMessage } from 'node:http';
import { DendroError } from '../domain/errors.ts';

interface Limits {
  readonly maxBytes: number;
  readonly tooLarge: () => DendroError;
  /** Reserves memory: once for the Content-Length or, without that header, for each chunk. May throw to reject the request. */
  readonly reserve: (byteLength: number) => void;
}

export async function readRequestBody(rawRequest: IncomingMessage, limits: Limits): Promise<Buffer> {
  const { maxBytes, tooLarge, reserve } = limits;
  const declaredBytes = Number(rawRequest.headers['content-length']);
  if (declaredBytes > maxBytes) throw tooLarge();
  if (declaredBytes > 0) reserve(declaredBytes);
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  try {
    for await (const chunk of rawRequest.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      receivedBytes += chunk.length;
      if (receivedBytes > maxBytes) throw tooLarge();
      if (Number.isNaN(declaredBytes)) reserve(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    // Drains the rest of the body, because the connection's next request follows it. Node drains a body by itself only if
    // nothing has started to read it.
    rawRequest.resume();
    if (error instanceof DendroError) throw error;
    throw new DendroError('invalid_body', 'the connection closed before the whole body was received', {
      cause: error,
    });
  }
  return Buffer.concat(chunks, receivedBytes);
}
