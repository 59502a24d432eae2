// Messages that replace the content of a view: loading, no rows and why, a reversed range, or an error.
import { type Endpoint, findLongestTier, readChoices, readRetentionDays } from '../api/catalog.ts';
import type { ApiError, Explanation, QueryResult } from '../api/client.ts';
import { h } from '../dom.ts';
import {
  createSendHelp,
  describeExisting,
  type ExistingRecords,
  hasRecords,
  type RecordSource,
} from '../existing-records.ts';
import { formatDateTime, formatElapsed, formatRecordCount } from '../format.ts';
import { findRange } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import type { ViewContext } from '../views/view.ts';

export interface EmptyState {
  /** Such as "No invocations in project acme in the last 5 minutes". */
  readonly title: string;
  /** Possible reasons that are specific to the view. */
  readonly hints: readonly string[];
  /** The log that the endpoint reads, such as "function log". */
  readonly log: string;
  /** Undefined if the query has no lower time bound. */
  readonly windowSeconds: number | undefined;
  /** What the endpoint reads, if the page knows it. */
  readonly source?: RecordSource;
  /** Switches to a longer time range. */
  readonly widerRangeAction?: Action | undefined;
}

export interface Action {
  readonly label: string;
  run(): void;
}

export function createLoadingMessage(): HTMLElement {
  return h('div', { class: 'message loading', role: 'status' }, h('p', {}, 'Loading…'));
}

/** Why a result is empty: what is unknown is undefined. */
export interface EmptyReason {
  readonly explanation: Explanation | undefined;
  readonly existing: ExistingRecords | undefined;
}

/**
 * Says what exists of the project. If it has records of the log kind, or that is unknown, the explanation says why none of them is in
 * the result. If there is no explanation, or records remain after its last condition, the message lists possible reasons.
 */
export function createEmptyMessage(
  state: EmptyState,
  result: QueryResult,
  { explanation, existing }: EmptyReason,
  context: Pick<ViewContext, 'linkToLogs' | 'linkToProject'>,
): HTMLElement {
  const { source, widerRangeAction } = state;
  const isLogEmpty = result.dataThrough === undefined;
  const isMissing = source !== undefined && existing !== undefined && !hasRecords(existing, source);
  const isExplained = !isMissing && explanation?.conditions.at(-1)?.remaining === 0;
  const reasons = isMissing ? [] : findReasons(state, result, isExplained ? explanation : undefined);
  return h(
    'div',
    { class: 'message' },
    h(
      'div',
      { class: 'message-text', role: 'status' },
      h('h2', {}, state.title),
      ...(source !== undefined && existing !== undefined ? describeExisting(existing, source, context) : []),
      ...(isExplained ? describeExplanation(explanation) : []),
      reasons.length === 0 ? undefined : h('p', {}, isExplained ? 'Notes:' : 'Possible reasons:'),
      reasons.length === 0 ? undefined : h('ul', {}, ...reasons.map(reason => h('li', {}, reason))),
    ),
    widerRangeAction === undefined || isLogEmpty || isMissing
      ? undefined
      : createActionButton(widerRangeAction),
    ...(source === undefined ? [] : createSendHelp(existing, source, isLogEmpty)),
  );
}

export function createReversedRangeMessage(
  { start, end }: ReversedRange,
  swap: (() => void) | undefined,
): HTMLElement {
  return h(
    'div',
    { class: 'message', role: 'status' },
    h('h2', {}, 'The time range is reversed'),
    h(
      'p',
      {},
      `It starts at ${formatDateTime(start)}, and it ends before that, at ${formatDateTime(end)}. No record can be in it.`,
    ),
    swap === undefined ? undefined : createActionButton({ label: 'Swap start and end', run: swap }),
  );
}

/** For a link with a cursor that the API rejects. */
export function createInvalidPageMessage({ message }: ApiError, action: Action): HTMLElement {
  return h(
    'div',
    { class: 'message error', role: 'alert' },
    h('h2', {}, 'Invalid link to a page'),
    h('p', {}, message),
    createActionButton(action),
  );
}

export function createActionButton({ label, run }: Action): HTMLElement {
  return h('button', { type: 'button', class: 'button', on: { click: run } }, label);
}

/** Unix milliseconds. */
export interface ReversedRange {
  readonly start: number;
  readonly end: number;
}

/** Finds a parameter `…_start` whose time is later than that of the parameter `…_end`. */
export function findReversedRange(parameters: Readonly<Record<string, string>>): ReversedRange | undefined {
  for (const [name, value] of Object.entries(parameters)) {
    const start = parseTimestamp(value);
    const end = parseTimestamp(parameters[name.replace(/_start$/, '_end')] ?? '');
    if (name.endsWith('_start') && start > end) return { start, end };
  }
  return undefined;
}

/** NaN if the text is not a timestamp. Without an offset, it is in UTC, as in the API. */
function parseTimestamp(text: string): number {
  return Date.parse(/T[^Z+-]*$/i.test(text) ? `${text}Z` : text);
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
    if (first?.name === 'project' && first.remaining === 0)
      reasons.push(`The ${log} has no records of this project. ${CHECK_SPELLING}`);
  } else if (dataThrough === undefined) reasons.push(`The ${log} has no records that your token can read.`);
  else {
    const lagSeconds = (ranAt - dataThrough) / 1000;
    const newest = `The newest record of the ${log} is from ${formatDateTime(dataThrough)}`;
    if (windowSeconds !== undefined && lagSeconds > windowSeconds)
      reasons.push(
        `${newest}, ${formatElapsed(lagSeconds)} before the query ran. Choose a longer interval, or check that logs still arrive.`,
      );
    else reasons.push(`The project may have no records. ${CHECK_SPELLING} (${newest}.)`);
  }
  if (clipped.includes('retention')) reasons.push(RETENTION_NOTE);
  return [...reasons, ...hints];
}

const CHECK_SPELLING = 'Check the spelling of its reference.';

export const RETENTION_NOTE =
  'The time range starts before the retention of the tier. Older records are not shown.';

/**
 * The tier limits what the page shows; undefined if it does not. A range that is as long as the retention does not count: the server
 * computes the limit a moment after the page computed the start of the range, so only that moment is hidden.
 */
export function createRetentionNote(
  { clipped }: QueryResult,
  endpoint: Endpoint,
  settings: UrlState['settings'],
  { updateSettings }: Pick<ViewContext, 'updateSettings'>,
): HTMLElement | undefined {
  const { name, ...longest } = findLongestTier(endpoint);
  const tier = readChoices(endpoint, 'project_tier').all.find(each => each.name === settings['tier']);
  const days = readRetentionDays(tier ?? { name, ...longest });
  const seconds = findRange(settings)?.seconds ?? Number.POSITIVE_INFINITY;
  if (!clipped.includes('retention') || seconds <= days * 86_400) return undefined;
  const isChosen = tier !== undefined && tier.name !== name; // by a link with a tier
  const label = `Without the limit of ${tier?.name}`;
  return h(
    'p',
    { class: 'note' },
    `${RETENTION_NOTE} `,
    isChosen ? createActionButton({ label, run: () => updateSettings({ tier: '' }) }) : undefined,
  );
}

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

export function createErrorMessage({ code, message, param }: ApiError, isRetried: boolean): HTMLElement {
  return h(
    'div',
    { class: 'message error', role: 'alert' },
    h('h2', {}, ERROR_TITLES[code] ?? 'Request failed'),
    h('p', {}, message),
    param === undefined ? undefined : h('p', { class: 'muted' }, 'Parameter: ', h('code', {}, param)),
    isRetried ? h('p', { class: 'muted' }, 'Retrying automatically.') : undefined,
  );
}
