// JSON parsing that keeps every number as it was sent. JSON.parse and JSON.stringify would change some numbers, such as a
// 19-digit nanosecond timestamp, a 25-digit id or 1e400. This file calls them inexact numbers (0.1 stays 0.1, so it is exact).
// Each is parsed into a string with a marker prefix (a marked number), and stringified back into the original number.
import { randomBytes } from 'node:crypto';

// Random, so that no sender can forge a marked number. Each thread has its own marker, so marked numbers must not be passed
// between threads. The first character is rare in logs, which makes the search for the marker fast.
const MARKER = `\`exact:${randomBytes(12).toString('base64url')}:`;

const MARKED_STRING = new RegExp(`"${MARKER}(-?\\d[\\d.eE+-]*)"`, 'g');

// Finds candidates for an inexact number: at least 16 characters (digits and points), or an exponent, after a character that
// can precede a number. The character class lists JSON's white space because \s took a third longer. The
// expression also matches inside strings, which costs time but is harmless. Matching takes linear time: 16 digits or points
// always match, so an attempt that fails has read only a few characters.
const CANDIDATE = /[ \t\n\r:,[](-?\d(?:[\d.]{15,}|[\d.]*[eE])[\d.eE+-]*)/g;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const NUMBER_LIKE = /-?\d[\d.eE+-]*/g;
const SHORTEST_INEXACT = '1e400'.length;
const COLON = /[ \t\n\r]*:/y;
const LARGEST_EXACT_INTEGER = String(Number.MAX_SAFE_INTEGER);

/** Parses JSON as JSON.parse does, and throws the same errors. */
export function parseExactJson(text: string): unknown {
  if (!mayContainInexactNumber(text)) return JSON.parse(text);
  try {
    return JSON.parse(markInexactNumbers(text));
  } catch {
    // Marking never breaks valid JSON. This call throws an error whose positions refer to the original text.
    return JSON.parse(text);
  }
}

/** Stringifies a value from `parseExactJson`. Marked numbers become the numbers that were sent. */
export function stringifyExactJson(value: unknown): string {
  return unmarkNumbers(JSON.stringify(value));
}

/** Replaces the marked numbers in the output of JSON.stringify with the original numbers. */
export function unmarkNumbers(json: string): string {
  return json.includes(MARKER) ? json.replace(MARKED_STRING, '$1') : json;
}

/** Returns the number as it was written, or undefined if `value` is not a marked number. */
export function exactNumberText(value: unknown): string | undefined {
  return typeof value === 'string' && value.startsWith(MARKER) ? value.slice(MARKER.length) : undefined;
}

/** Returns what `parseExactJson` returns for a number. `token` must be a valid JSON number. */
export function toExactNumber(token: string): number | string {
  return isExactInDouble(token) ? Number(token) : `${MARKER}${token}`;
}

/** Whether `value` is a string in the JSON. A marked number has the type string but is not one. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.startsWith(MARKER);
}

function mayContainInexactNumber(text: string): boolean {
  // CANDIDATE requires a character before the number. If the whole text is one number, there is none.
  if (/^[\d-]/.test(text)) return true;
  CANDIDATE.lastIndex = 0;
  for (let match = CANDIDATE.exec(text); match !== null; match = CANDIDATE.exec(text)) {
    if (!isExactInDouble(match[1] ?? '')) return true;
  }
  return false;
}

/** Skips string literals and marks the numbers between them. */
function markInexactNumbers(text: string): string {
  let marked = '';
  let copiedUpTo = 0;
  for (let index = 0; index < text.length; ) {
    const quote = text.indexOf('"', index);
    const end = quote === -1 ? text.length : quote;
    if (end - index >= SHORTEST_INEXACT) {
      const between = text.slice(index, end);
      const markedBetween = between.replace(NUMBER_LIKE, markIfInexact);
      if (markedBetween !== between) {
        marked += text.slice(copiedUpTo, index) + markedBetween;
        copiedUpTo = end;
      }
    }
    index = quote === -1 ? text.length : endOfString(text, quote);
  }
  return marked + text.slice(copiedUpTo);
}

function markIfInexact(token: string, offset: number, between: string): string {
  // Leaves an invalid number, or a number in place of a key, as it is: the marker's quotes would make the text valid JSON.
  if (isExactInDouble(token) || !NUMBER.test(token)) return token;
  COLON.lastIndex = offset + token.length;
  return COLON.test(between) ? token : `"${MARKER}${token}"`;
}

/** Returns the index after the string literal that starts at `open`. A regular expression could overflow the stack. */
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

/** Whether the number stays the same, in any notation (`1.50`, `15e-1`), if it is parsed as a double and written back. */
function isExactInDouble(token: string): boolean {
  // Fast path for microsecond timestamps. Decimal strings of equal length compare in numeric order.
  if (/^[1-9]\d{15}$/.test(token) && token <= LARGEST_EXACT_INTEGER) return true;
  const double = Number(token);
  if (!Number.isFinite(double)) return false;
  const doubleText = String(double);
  if (doubleText === token) return true;
  // Fast path for nanosecond timestamps: String() writes integers of up to 21 digits without an exponent, so if the texts differ,
  // writing the double back would change the number.
  if (/^[1-9]\d{0,20}$/.test(token)) return false;
  return normalForm(doubleText) === normalForm(token);
}

/**
 * Digits without leading and trailing zeros, and a power of ten. Uses loops because /0+$/ takes quadratic time on a long
 * run of zeros in the middle.
 */
function normalForm(number: string): string {
  const exponentIndex = number.search(/[eE]/);
  const mantissa = exponentIndex === -1 ? number : number.slice(0, exponentIndex);
  const exponent = exponentIndex === -1 ? 0 : Number(number.slice(exponentIndex + 1));
  const sign = mantissa.startsWith('-') ? '-' : '';
  const point = mantissa.indexOf('.');
  const fractionLength = point === -1 ? 0 : mantissa.length - point - 1;
  const digits = mantissa.slice(sign.length).replace('.', '');
  let first = 0;
  while (digits[first] === '0') first++;
  if (first === digits.length) return '0';
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return `${sign}${digits.slice(first, end)}e${exponent - fractionLength + digits.length - end}`;
}
