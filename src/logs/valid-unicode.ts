// Makes text valid Unicode: half a surrogate pair has no UTF-8, and a store that meets one refuses the whole batch.

// JSON.stringify writes exactly these as \udXXX; every other backslash begins an escape of its own, matched so that
// the text `\\ud800`, an escaped backslash and letters, is left alone.
const ESCAPE = /\\(?:ud[89a-f][0-9a-f]{2}|.)/g;

/** Replaces each lone surrogate, in keys and values, by U+FFFD. `json` must be the output of JSON.stringify. */
export function toValidJson(json: string): string {
  if (!json.includes('\\ud')) return json;
  const valid = json.replace(ESCAPE, found => (found.startsWith('\\ud') ? '\ufffd' : found));
  // Two keys may have become one; parsing leaves the last, as it does with any key that is sent twice.
  return JSON.stringify(JSON.parse(valid));
}
