// JSON that keeps every number as it was written. A double cannot hold a 19-digit nanosecond timestamp, a 25-digit id
// or 1e400; such a number is parsed into a string that carries a mark, and stringified back into the bare number.
import { randomBytes } from 'node:crypto';
import { isExactInDouble } from './exact-number.ts';

// Drawn anew in every process, so no sender can write text that would pass for a mark. It begins with a character that
// is rare in logs, which makes looking for it quick.
const MARK = `\`exact:${randomBytes(12).toString('base64url')}:`;

const MARKED_STRING = new RegExp(`"${MARK}(-?\\d[\\d.eE+-]*)"`, 'g');

// What might be a number that a double cannot hold: 16 digits or more, or an exponent, after a character that a number
// can follow; \s, which is more than JSON's blanks, took a third longer. It also finds such text inside strings, which
// costs time and nothing else. No two of its repetitions compete for a character, so it is linear.
const CANDIDATE = /[ \t\n\r:,[](-?\d(?:[\d.]{15,}|[\d.]*[eE])[\d.eE+-]*)/g;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const NUMBER_LIKE = /-?\d[\d.eE+-]*/g;
const SHORTEST_INEXACT = '1e400'.length;
const COLON = /[ \t\n\r]*:/y;

/** Parses JSON as JSON.parse does, and throws what it throws. */
export function parseExactJson(text: string): unknown {
  if (!mayHoldInexactNumber(text)) return JSON.parse(text);
  try {
    return JSON.parse(markInexactNumbers(text));
  } catch {
    // Where marking leaves the text broken it was broken before: this throws, in terms of the text that was sent.
    return JSON.parse(text);
  }
}

/** Writes what `parseExactJson` gave as JSON text, marked numbers as the numbers that were sent. */
export function stringifyExactJson(value: unknown): string {
  return unmark(JSON.stringify(value));
}

/** Turns the marked numbers in the output of JSON.stringify back into bare numbers. */
export function unmark(json: string): string {
  return json.includes(MARK) ? json.replace(MARKED_STRING, '$1') : json;
}

/** The number as it was written, if `value` is a marked number. */
export function exactDigits(value: unknown): string | undefined {
  return typeof value === 'string' && value.startsWith(MARK) ? value.slice(MARK.length) : undefined;
}

/** Whether `value` is text that a sender wrote. A marked number is a string to TypeScript, but it is no text. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.startsWith(MARK);
}

function mayHoldInexactNumber(text: string): boolean {
  // No character stands before a number that is the whole text.
  if (/^[\d-]/.test(text)) return true;
  CANDIDATE.lastIndex = 0;
  for (let match = CANDIDATE.exec(text); match !== null; match = CANDIDATE.exec(text)) {
    if (!isExactInDouble(match[1] ?? '')) return true;
  }
  return false;
}

/** Goes from string to string and marks the numbers in between. */
function markInexactNumbers(text: string): string {
  let marked = '';
  let copied = 0;
  for (let index = 0; index < text.length; ) {
    const quote = text.indexOf('"', index);
    const end = quote === -1 ? text.length : quote;
    if (end - index >= SHORTEST_INEXACT) {
      const between = text.slice(index, end);
      const markedBetween = between.replace(NUMBER_LIKE, markIfInexact);
      if (markedBetween !== between) {
        marked += text.slice(copied, index) + markedBetween;
        copied = end;
      }
    }
    index = quote === -1 ? text.length : endOfString(text, quote);
  }
  return marked + text.slice(copied);
}

function markIfInexact(token: string, offset: number, between: string): string {
  // What is no number, or a number in the place of a key, is not JSON; as a marked string it would become JSON.
  if (isExactInDouble(token) || !NUMBER.test(token)) return token;
  COLON.lastIndex = offset + token.length;
  return COLON.test(between) ? token : `"${MARK}${token}"`;
}

/** The index after the quote that closes the string which opens at `open`. No regular expression: its stack is finite. */
function endOfString(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (close !== -1 && isEscaped(text, close)) close = text.indexOf('"', close + 1);
  return close === -1 ? text.length : close + 1;
}

function isEscaped(text: string, index: number): boolean {
  let backslashes = 0;
  while (text[index - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}
