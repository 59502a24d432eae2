// Reads a log file and parses its chunks as the body parser does.

import { parseNdjsonLines } from '../../src/logs/parse.ts';
import type { LogChunk } from '../../src/logs/read-file.ts';
import { type ReadOptions, readLogFile } from '../../src/logs/read-file.ts';

/** Returns the values of a chunk. A rejected record is represented by its code. */
export function parseChunk(chunk: LogChunk): unknown[] {
  if ('rejection' in chunk) return [chunk.rejection.code];
  const lines = Buffer.from(chunk.lines).toString('utf8').split('\n');
  return [...parseNdjsonLines(lines)].map(parsed =>
    'value' in parsed ? parsed.value : parsed.rejection.code,
  );
}

/** Returns all values of a file, in order. */
export async function readAll(path: string, options?: ReadOptions): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const chunk of readLogFile(path, options))
    for (const value of parseChunk(chunk)) values.push(value);
  return values;
}
