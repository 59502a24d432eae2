// How many values a text can hold at most, counted without reading it. A text of empty arrays takes twenty times its length
// in memory, and a thread that runs out of memory may take the whole program with it; millions of broken lines take minutes.
import { DendroError } from '../domain/errors.ts';

/** A text this short is harmless, whatever is in it. */
const SHORT_LENGTH = 4 * 1024 * 1024;

/** What begins a value, and how many there may be: four bytes for a value, sixteen for a line. Records have many more. */
const LIMITS = {
  json: { characters: codesOf('[{,'), most: 4 * 1024 * 1024 },
  ndjson: { characters: codesOf('\n'), most: 1024 * 1024 },
};

/** Whether there may be more values in it than can be read at once. Characters within strings count as well. */
export function holdsTooManyValues(text: string, form: 'json' | 'ndjson'): boolean {
  if (text.length <= SHORT_LENGTH) return false;
  const { characters, most } = LIMITS[form];
  let count = 0;
  for (let index = 0; index < text.length; index++) if (characters.has(text.charCodeAt(index))) count++;
  return count > most;
}

export function tooManyValues(): DendroError {
  return new DendroError(
    'payload_too_large',
    'the body holds more values than can be read at once; send it in smaller batches',
  );
}

function codesOf(characters: string): ReadonlySet<number> {
  return new Set([...characters].map(character => character.charCodeAt(0)));
}
