// Messages that replace the content of a view: loading, no project, no rows and why, or an error.
import type { ApiError, Explanation, QueryResult } from '../api/client.ts';
import { h } from '../dom.ts';
import { formatDateTime, formatElapsed, formatRecordCount } from '../format.ts';

export interface EmptyState {
  /** Such as "No invocations in project acme in the last 5 minutes". */
  readonly title: string;
  /** Possible reasons that are specific to the view. */
  readonly hints: readonly string[];
  /** The log that the endpoint reads, such as "function log". */
  readonly log: string;
  /** Undefined if the query has no lower time bound. */
  readonly windowSeconds: number | undefined;
}

export function createLoadingMessage(): HTMLElement {
  return h('div', { class: 'message loading', role: 'status' }, h('p', {}, 'Loading…'));
}

export function createProjectPrompt(): HTMLElement {
  return h(
    'div',
    { class: 'message' },
    h('h2', {}, 'Choose a project'),
    h(
      'p',
      {},
      'Enter a project reference above. It becomes part of this page’s URL, so you can bookmark the page.',
    ),
  );
}

/** Without an explanation, or if it finds records, the message lists possible reasons instead. */
export function createEmptyMessage(
  state: EmptyState,
  result: QueryResult,
  explanation: Explanation | undefined,
): HTMLElement {
  const isExplained = explanation?.conditions.at(-1)?.remaining === 0;
  const reasons = findReasons(state, result, isExplained ? explanation : undefined);
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, state.title),
    ...(isExplained ? describeExplanation(explanation) : []),
    reasons.length === 0 ? undefined : h('p', {}, isExplained ? 'Notes:' : 'Possible reasons:'),
    reasons.length === 0 ? undefined : h('ul', {}, ...reasons.map(reason => h('li', {}, reason))),
  );
}

function describeExplanation({ summary, conditions }: Explanation): HTMLElement[] {
  const counts = conditions.map(({ name, remaining }) =>
    h('li', {}, `after the condition ${name}: ${formatRecordCount(remaining)}`),
  );
  return [h('p', {}, summary), h('p', {}, 'Records that remain:'), h('ul', {}, ...counts)];
}

function findReasons(
  { hints, log, windowSeconds }: EmptyState,
  result: QueryResult,
  explanation: Explanation | undefined,
): string[] {
  const reasons: string[] = [];
  const { dataThrough, ranAt, clipped } = result;
  if (explanation !== undefined) {
    const [first] = explanation.conditions;
    if (first?.name === 'project' && first.remaining === 0) reasons.push(CHECK_SPELLING);
  } else if (dataThrough === undefined) reasons.push(`The ${log} has no records that your token can read.`);
  else {
    const lagSeconds = (ranAt - dataThrough) / 1000;
    const newest = `The newest record of the ${log} is from ${formatDateTime(dataThrough)}`;
    if (windowSeconds !== undefined && lagSeconds > windowSeconds)
      reasons.push(
        `${newest}, ${formatElapsed(lagSeconds)} before the query ran. Choose a longer interval, or check that logs still arrive.`,
      );
    else reasons.push(`${CHECK_SPELLING} (${newest}.)`);
  }
  if (clipped.includes('retention')) reasons.push(RETENTION_NOTE);
  return [...reasons, ...hints];
}

const CHECK_SPELLING = 'There are no records for this project. Check the spelling of its reference.';

export const RETENTION_NOTE =
  'The time range starts before the retention of the tier. Older records are not shown.';

const ERROR_TITLES: Readonly<Record<string, string>> = {
  invalid_parameter: 'Invalid parameter',
  missing_parameter: 'Missing parameter',
  forbidden: 'Access denied',
  not_found: 'Endpoint not found',
  rate_limited: 'Too many requests',
  unavailable: 'Service unavailable',
  query_timeout: 'Query timed out',
  unreachable: 'No connection',
};

export function createErrorMessage({ code, message, param, retryAfterSeconds }: ApiError): HTMLElement {
  return h(
    'div',
    { class: 'message error', role: 'alert' },
    h('h2', {}, ERROR_TITLES[code] ?? 'Request failed'),
    h('p', {}, message),
    param === undefined ? undefined : h('p', { class: 'muted' }, 'Parameter: ', h('code', {}, param)),
    retryAfterSeconds === undefined ? undefined : h('p', { class: 'muted' }, 'Retrying automatically.'),
  );
}
