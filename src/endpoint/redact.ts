// Replaces IPv4 and IPv6 addresses in the string values of rows, for tokens with PII redaction.
import type { Cell, Column } from '../store/store.ts';

const REPLACEMENT = 'REDACTED';

export function redactRow(columns: readonly Column[], row: readonly Cell[]): readonly Cell[] {
  return row.map((cell, index) => {
    if (typeof cell !== 'string') return cell; // numbers and timestamps contain no address
    return columns[index]?.type === 'json' ? redactJson(cell) : redactText(cell);
  });
}

/** Decodes each string and key first: an escape such as \u003a (a colon) can be a part of an address. */
export function redactJson(json: string): string {
  return json.replace(JSON_STRING, quoted => {
    const text = JSON.parse(quoted) as string;
    const redacted = redactText(text);
    return redacted === text ? quoted : JSON.stringify(redacted);
  });
}

const JSON_STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Also removes the groups before a replaced address, such as the ::ffff: of ::ffff:10.0.0.1. */
export function redactText(text: string): string {
  const withoutIPv4 = text.replace(IPV4, REPLACEMENT).replace(GROUPS_BEFORE, REPLACEMENT);
  return withoutIPv4.replace(IPV6, REPLACEMENT).replace(GROUPS_BEFORE, REPLACEMENT);
}

// Every repetition is bounded, except that of IPV4, which cannot fail after its fourth number: all of these expressions take linear
// time on any text.

/** `%`, or a `%` that was escaped up to four times: `%25`, `%2525`. */
const PERCENT = '%(?:25){0,4}';
/**
 * A string can contain a URL, JSON or a line of another log that is still escaped, even more than once. There an address can directly
 * follow an escape such as `%20`, `%2520`, `\n`, `\x20`, `\040` or `\u0020`, written as plain characters. The last character of the
 * escape must not make the address look like a part of a word or number.
 */
const ESCAPE = `${PERCENT}(?:[0-9a-f]{2}|u[0-9a-f]{4})|(?:\\\\|${PERCENT}5c)(?:[abefnrtv]|[0-7]{1,3}|x[0-9a-f]{2}|u[0-9a-f]{4}|u[0-9a-f]{8})`;
/** The first condition is only there because it is fast, and false in most places. */
const AFTER_ESCAPE = `(?<=[%\\\\][0-9a-z]{1,16})(?<=${ESCAPE})`;

/** Four numbers or more: an address can have other numbers before and after it, as in `7.10.20.30.40` and `10.20.30.40.443`. */
const OCTET = '(?:25[0-5]|2[0-4]\\d|[01]?\\d?\\d)';
const IPV4 = new RegExp(`(?:(?<!\\d)|${AFTER_ESCAPE})${OCTET}(?:\\.${OCTET}){3,}(?!\\d)`, 'gi');

const GROUP = '[0-9a-f]{1,4}';
const WORD_START = `(?:(?<![0-9a-z])|${AFTER_ESCAPE})`;

const GROUPS_BEFORE = new RegExp(`${WORD_START}(?:${GROUP}:|:){2,7}${REPLACEMENT}`, 'gi');

// Eight groups; or up to seven, with one gap `::` at the start, in the middle or at the end (RFC 4291, section 2.2).
// With a gap in the middle, one more: in `%20::1:2:3:4:5:6:7`, the digits of the escape look like a group before the gap.
const WITH_GAP_INSIDE = [6, 5, 4, 3, 2, 1].map(
  before => `(?:${GROUP}:){${before}}(?::${GROUP}){1,${8 - before}}`,
);
const IPV6_FORMS = [
  `(?:${GROUP}:){7}${GROUP}`,
  ...WITH_GAP_INSIDE,
  `:(?::${GROUP}){1,7}`,
  `(?:${GROUP}:){1,7}:`,
];
// A gap alone, as in C++'s std::string, is not an address. Neither is a match with a letter or digit next to it.
const IPV6 = new RegExp(`${WORD_START}(?:${IPV6_FORMS.join('|')})(?![0-9a-z])`, 'gi');
