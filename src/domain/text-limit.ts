// The rule for texts that a caller can ask for: values of parameters, and the names in records that they are compared with.
import { MAX_VALUE_LENGTH } from './limits.ts';

/** Returns what is wrong with the text, as the end of a sentence, or undefined. */
export function findTextProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character';
  return isTooLong(text) ? `is too long: at most ${MAX_VALUE_LENGTH} characters are allowed` : undefined;
}

/** The limit counts code points: a character outside the Basic Multilingual Plane counts as one. */
function isTooLong(text: string): boolean {
  if (text.length <= MAX_VALUE_LENGTH) return false;
  return text.length > 2 * MAX_VALUE_LENGTH || [...text].length > MAX_VALUE_LENGTH;
}
