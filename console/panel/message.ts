// What stands where rows would stand: waiting, nothing there and why, or what went wrong.
import type { Answer } from '../api/answer.ts';
import type { Fault } from '../api/fault.ts';
import { h } from '../dom.ts';
import { formatAgo, formatFull } from '../times.ts';

export interface EmptyWords {
  /** Such as "No invocations of acme in the last 5 minutes". */
  readonly title: string;
  /** Further reasons that only the view knows. */
  readonly hints: readonly string[];
  /** What the endpoint reads, such as "function log". */
  readonly log: string;
  /** Undefined where the window has no beginning. */
  readonly windowSeconds: number | undefined;
}

export function loadingMessage(): HTMLElement {
  return h('div', { class: 'message loading', role: 'status' }, h('p', {}, 'Loading…'));
}

export function askForProject(): HTMLElement {
  return h(
    'div',
    { class: 'message' },
    h('h2', {}, 'Which project?'),
    h(
      'p',
      {},
      'Enter a project reference above. It becomes part of this page’s address, so you can keep the link.',
    ),
  );
}

export function emptyMessage(words: EmptyWords, answer: Answer): HTMLElement {
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, words.title),
    h('p', {}, 'It may be empty because'),
    h('ul', {}, ...explainEmpty(words, answer).map(reason => h('li', {}, reason))),
  );
}

function explainEmpty({ hints, log, windowSeconds }: EmptyWords, answer: Answer): string[] {
  const reasons: string[] = [];
  const { dataThrough, askedAt, clipped } = answer;
  if (dataThrough === undefined)
    reasons.push(`this server holds no records of the ${log} that your token may see.`);
  else {
    const behind = (askedAt - dataThrough) / 1000;
    if (windowSeconds !== undefined && behind > windowSeconds)
      reasons.push(
        `the data reach only through ${formatFull(dataThrough)}, ${formatAgo(behind)} before the answer: choose a longer interval, or see whether logs still arrive.`,
      );
    else
      reasons.push(
        `there are no records for this project: its reference may be misspelt. (The ${log} as a whole reaches through ${formatFull(dataThrough)}.)`,
      );
  }
  if (clipped.includes('retention'))
    reasons.push(
      'the range you asked for begins before the retention of the tier, and older records are not shown.',
    );
  return [...reasons, ...hints];
}

const TITLES: Readonly<Record<string, string>> = {
  invalid_parameter: 'That cannot be asked',
  missing_parameter: 'Something is missing',
  forbidden: 'Your token does not open this',
  not_found: 'There is no such endpoint',
  rate_limited: 'Too many requests',
  unavailable: 'The service cannot answer just now',
  query_timeout: 'The query took too long',
  unreachable: 'No connection',
};

/** The API's own words; they are written for people. */
export function faultMessage({ code, message, param, retryAfterSeconds }: Fault): HTMLElement {
  return h(
    'div',
    { class: 'message fault', role: 'alert' },
    h('h2', {}, TITLES[code] ?? 'That did not work'),
    h('p', {}, message),
    param === undefined ? undefined : h('p', { class: 'quiet' }, 'Parameter: ', h('code', {}, param)),
    retryAfterSeconds === undefined ? undefined : h('p', { class: 'quiet' }, 'Trying again by itself.'),
  );
}
