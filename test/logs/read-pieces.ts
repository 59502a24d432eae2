// What a file of logs holds, as the thread that reads its pieces will see it.
import type { LogChunk } from '../../src/logs/log-piece.ts';
import { parseNdjsonLines } from '../../src/logs/parse.ts';
import { type ReadOptions, readLogFile } from '../../src/logs/read-file.ts';

/** The values of a piece; the code of a rejection in place of what is none. */
export function valuesOf(piece: LogChunk): unknown[] {
  if ('rejection' in piece) return [piece.rejection.code];
  const lines = Buffer.from(piece.lines).toString('utf8').split('\n');
  return [...parseNdjsonLines(lines)].map(parsed =>
    'value' in parsed ? parsed.value : parsed.rejection.code,
  );
}

/** Everything a file holds, in its order. */
export async function readAll(path: string, options?: ReadOptions): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const piece of readLogFile(path, options))
    for (const value of valuesOf(piece)) found.push(value);
  return found;
}
