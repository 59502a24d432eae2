// Checks whether ClickHouse accepts a regular expression.
import type { QueryOptions } from '../store.ts';
import { codeOf } from './errors.ts';
import type { Reader } from './reader.ts';

/** The endpoints' SQL puts these flags before a pattern, so that it matches as it does in DuckDB. */
const PATTERN_FLAGS = '(?-is)';
const CANNOT_COMPILE_REGEXP = 427;

/** Returns what is wrong with the pattern, in the words of RE2, or undefined. */
export async function validatePattern(
  reader: Reader,
  pattern: string,
  options?: QueryOptions,
): Promise<string | undefined> {
  const sql = `select match('', concat('${PATTERN_FLAGS}', {pattern:String}))`;
  try {
    await reader.query({ sql, parameters: { pattern }, purpose: 'pattern' }, options);
    return undefined;
  } catch (error) {
    if (codeOf(error) !== CANNOT_COMPILE_REGEXP) throw error;
    return toPatternProblem((error as Error).message);
  }
}

/** RE2's sentence from ClickHouse's error message, without the flags, which the caller did not write. */
function toPatternProblem(message: string): string {
  const prefix = ', error: ';
  const start = message.lastIndexOf(prefix);
  const end = message.indexOf('. Look at https', start);
  if (start === -1 || end === -1) return 'it cannot be compiled';
  return message.slice(start + prefix.length, end).replace(`: ${PATTERN_FLAGS}`, ': ');
}
