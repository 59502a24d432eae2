// A piece of a file of logs: as many whole lines of NDJSON as came at once, or what cannot even be a line.
import { stringifyExactJson } from './exact-json.ts';
import type { Parsed } from './parse.ts';
import type { Rejection } from './rejection.ts';

export type LogChunk = { readonly lines: Uint8Array } | { readonly rejection: Rejection };

const NESTS_TOO_DEEPLY: Rejection = {
  code: 'too_deep',
  message: 'The record nests so deeply that it cannot be written as a line.',
};

/** Values that were read from another form, as lines. */
export function* toChunks(values: readonly Parsed[]): Generator<LogChunk> {
  let lines: string[] = [];
  const flush = function* (): Generator<LogChunk> {
    if (lines.length > 0) yield { lines: Buffer.from(lines.join('')) };
    lines = [];
  };
  for (const parsed of values) {
    const written = 'rejection' in parsed ? parsed.rejection : write(parsed.value);
    if (typeof written === 'string') lines.push(written);
    else {
      yield* flush();
      yield { rejection: written };
    }
  }
  yield* flush();
}

function write(value: unknown): string | Rejection {
  try {
    return `${stringifyExactJson(value)}\n`;
  } catch {
    return NESTS_TOO_DEEPLY;
  }
}
