// How an evaluation changes the state of an alert, and which notifications follow. Time comes as `elapsedMs`, measured by a clock that
// never jumps, except over a restart. The time of day is only shown to people.
import { randomUUID } from 'node:crypto';
import type { AlertDefinition } from '../endpoint/alert-definition.ts';
import type { AlertState, Instance, Item, Notification, Problem } from './state.ts';

/** What an evaluation found. */
export type Finding =
  /** `isComplete`: a row that is not there is gone. False if the result was clipped, or there is no new data. */
  | { readonly problems: ReadonlyMap<string, Problem>; readonly isComplete: boolean }
  | { readonly error: string };

export interface Moment {
  readonly elapsedMs: number;
  /** The time of day, RFC 3339. */
  readonly now: string;
  /** The start of the records that the query read. */
  readonly from: string;
  /** The console that links lead to; undefined: no links. */
  readonly consoleUrl?: string | undefined;
}

/** The alert as its definition declares it. */
export type Rule = Pick<AlertDefinition, 'every' | 'for' | 'repeat' | 'resolve_after'> & {
  readonly notify: readonly string[];
};

/** After this many failed evaluations in a row, the alert is in the state `error`. */
export const MAX_FAILURES = 3;
/** Of one alert. More are ignored until others resolve, so that its state stays small. */
const MAX_INSTANCES = 1000;
const MAX_HISTORY = 1000;
const HISTORY_MS = 7 * 86_400_000;

/** Returns how many instances began to fire, how many resolved, and how many rows were ignored because there are too many. */
export function applyFinding(
  state: AlertState,
  rule: Rule,
  finding: Finding,
  moment: Moment,
): { readonly fired: number; readonly resolved: number; readonly ignored: number } {
  const items: { readonly receiver: string; readonly item: Item }[] = [];
  const present = findPresent(state, finding);
  let [fired, resolved, ignored] = [0, 0, 0];
  countDownSilence(state, moment);
  for (const [id, instance] of Object.entries(state.instances)) {
    if (present.has(id)) continue;
    if (instance.state === 'firing') instance.elapsed_ms += moment.elapsedMs;
    if (!isGone(instance, finding)) continue;
    instance.missed++;
    if (instance.state === 'firing' && instance.missed < rule.resolve_after) continue;
    items.push(...endInstance(state, id, 'the problem is gone', moment));
    if (instance.state === 'firing') resolved++;
  }
  let free = MAX_INSTANCES - Object.keys(state.instances).length;
  for (const [id, problem] of present) {
    if (problem.cause === 'row' && state.instances[id] === undefined && free-- <= 0) ignored++;
    else if (updateInstance(state, id, problem, rule, moment).hasFired) fired++;
  }
  for (const [id, instance] of Object.entries(state.instances))
    if (instance.state === 'firing' && instance.missed === 0)
      items.push(...notify(state, id, instance, rule, moment));
  enqueue(state, items, moment);
  removeOldHistory(state, moment);
  const isQuiet = state.failures === 0 && state.silence === null && Object.keys(state.instances).length === 0;
  state.last_evaluated = isQuiet ? null : moment.now;
  return { fired, resolved, ignored };
}

/** Ends all instances of an alert that is no longer defined. */
export function resolveAll(state: AlertState, reason: string, moment: Moment): void {
  const ids = Object.keys(state.instances);
  enqueue(
    state,
    ids.flatMap(id => endInstance(state, id, reason, moment)),
    moment,
  );
  state.failures = 0;
  state.silence = null;
  state.last_evaluated = null;
  removeOldHistory(state, moment);
}

/** The problems by instance. A failed evaluation says nothing about rows. */
function findPresent(state: AlertState, finding: Finding): ReadonlyMap<string, Problem> {
  if (!('error' in finding)) {
    state.failures = 0;
    return finding.problems;
  }
  state.failures = Math.min(state.failures + 1, MAX_FAILURES);
  const problem: Problem = { cause: 'error', key: {}, summary: finding.error, row: {} };
  return new Map(state.failures < MAX_FAILURES ? [] : [['error', problem]]);
}

/** Evaluations come a little early or late. Without half an interval of tolerance, that would delay a notification by a whole one. */
function hasPassed(elapsedMs: number, ms: number, { every }: Rule): boolean {
  return elapsedMs + every / 2 > ms;
}

/** Whether the evaluation says that the instance, which it did not find, is gone. */
function isGone({ cause }: Instance, finding: Finding): boolean {
  return !('error' in finding) && (finding.isComplete || cause !== 'row');
}

function updateInstance(
  state: AlertState,
  id: string,
  problem: Problem,
  rule: Rule,
  { elapsedMs, now, from }: Moment,
): { readonly hasFired: boolean } {
  const known = state.instances[id];
  const instance: Instance = known
    ? { ...known, ...problem, elapsed_ms: known.elapsed_ms + elapsedMs, missed: 0 }
    : {
        ...{ ...problem, state: 'pending', severity: state.severity, started_at: now, from },
        ...{ elapsed_ms: 0, missed: 0, notified: [] },
      };
  state.instances[id] = instance;
  // An error has failed several times, and `no_data` has an age: neither has to persist.
  const hasPersisted =
    problem.cause !== 'row' ||
    rule.for === 0 ||
    (known !== undefined && hasPassed(instance.elapsed_ms, rule.for, rule));
  if (instance.state === 'firing' || !hasPersisted) return { hasFired: false };
  instance.state = 'firing';
  instance.severity = state.severity;
  instance.elapsed_ms = 0;
  return { hasFired: true };
}

/** Removes an instance. If it has fired, it becomes history, and those who know about it are told. */
function endInstance(state: AlertState, id: string, reason: string, moment: Moment) {
  const { now } = moment;
  const instance = state.instances[id];
  delete state.instances[id];
  if (instance?.state !== 'firing') return [];
  const { cause, key, summary, started_at } = instance;
  const ended_at = now > started_at ? now : started_at; // the clock may have been set back
  state.history.push({ cause, key, summary, started_at, ended_at, reason });
  const item = toItem(state, id, instance, moment, { ended_at, reason });
  return instance.notified.map(receiver => ({ receiver, item }));
}

function removeOldHistory(state: AlertState, { now }: Moment): void {
  const oldest = new Date(Date.parse(now) - HISTORY_MS).toISOString();
  state.history = state.history.filter(({ ended_at }) => ended_at > oldest).slice(-MAX_HISTORY);
}

/**
 * Each receiver that was not told yet gets the instance. If a reminder is due, or if a notification was dropped, so do the others,
 * unless earlier notifications wait for them: a dead receiver must not get more and more.
 */
function notify(state: AlertState, id: string, instance: Instance, rule: Rule, moment: Moment) {
  if (state.silence !== null) return [];
  const isWaiting = (receiver: string) => state.outbox.some(each => each.receiver === receiver);
  const isReminder = rule.repeat !== undefined && hasPassed(instance.elapsed_ms, rule.repeat, rule);
  const { notified, lost = [] } = instance;
  const receivers = rule.notify.filter(
    each => !notified.includes(each) || ((isReminder || lost.includes(each)) && !isWaiting(each)),
  );
  if (isReminder && receivers.length > 0) instance.elapsed_ms = 0;
  if (lost.length > 0) instance.lost = lost.filter(each => !receivers.includes(each));
  instance.notified = [...new Set([...notified, ...receivers])];
  return receivers.map(receiver => ({ receiver, item: toItem(state, id, instance, moment) }));
}

/** `end`: it has resolved. */
export function toItem(
  { kind }: AlertState,
  id: string,
  { cause, key, severity, summary, row, started_at, from }: Instance,
  { now, consoleUrl }: Moment,
  end?: { readonly ended_at: string; readonly reason: string },
): Item {
  const project = row['project'] ?? key['project'];
  const view: Record<string, string> =
    typeof project === 'string'
      ? { view: 'logs', project, kind, range: 'custom', start: from, end: end?.ended_at ?? now }
      : { view: 'alerts' };
  // A colon needs no escape, which would hide an IPv6 address from redaction.
  const link = consoleUrl && `${consoleUrl}/?${`${new URLSearchParams(view)}`.replaceAll('%3A', ':')}`;
  return {
    ...{
      id,
      state: end ? 'resolved' : cause === 'error' ? 'error' : 'firing',
      cause,
      severity,
      key,
      summary,
    },
    ...{ row, started_at, ended_at: end?.ended_at ?? null, reason: end?.reason ?? null, link: link ?? null },
  };
}

/** One notification for each receiver, with all of its items. */
function enqueue(
  state: AlertState,
  items: readonly { readonly receiver: string; readonly item: Item }[],
  { now }: Moment,
): void {
  for (const receiver of new Set(items.map(each => each.receiver))) {
    const own = items.filter(each => each.receiver === receiver).map(({ item }) => item);
    state.outbox.push(createNotification(state, receiver, own, now));
  }
}

export function createNotification(
  { name, severity }: Pick<AlertState, 'name' | 'severity'>,
  receiver: string,
  items: readonly Item[],
  now: string,
): Notification {
  return { id: randomUUID(), receiver, alert: name, severity, created_at: now, items, waited_ms: 0 };
}

function countDownSilence(state: AlertState, { elapsedMs, now }: Moment): void {
  if (state.silence === null) return;
  state.silence.left_ms -= elapsedMs;
  if (state.silence.left_ms <= 0 || now >= state.silence.until) state.silence = null;
}
