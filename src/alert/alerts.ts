// The alerts of a running server: evaluates the endpoints that declare one, in turn, updates their states and lets notifications be
// delivered. Knows no HTTP routes.
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { DendroError, isProgrammingError } from '../domain/errors.ts';
import { formatTimestamp, parseTimestamp } from '../domain/timestamp.ts';
import type { AlertDefinition } from '../endpoint/alert-definition.ts';
import { type AlertRule, listAlertRules, PLACEHOLDER } from '../endpoint/alert-rules.ts';
import { type Catalog, type Endpoint, listColumns } from '../endpoint/catalog.ts';
import { selectKind } from '../endpoint/definition.ts';
import { encodeRows } from '../endpoint/encode-rows.ts';
import type { EndpointResult } from '../endpoint/endpoint-result.ts';
import { findReadRange } from '../endpoint/parameters.ts';
import { type EndpointDependencies, runEndpoint } from '../endpoint/run-endpoint.ts';
import type { Observe } from '../observe/event.ts';
import { MICROS_PER_SECOND } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import { Delivery } from './delivery.ts';
import { toMessage, toText } from './message.ts';
import type { Receivers } from './receivers.ts';
import {
  type AlertState,
  type AlertStates,
  emptyState,
  type Instance,
  type Json,
  type Problem,
} from './state.ts';
import {
  applyFinding,
  createNotification,
  type Finding,
  type Moment,
  type Rule,
  resolveAll,
  toItem,
} from './transition.ts';

export interface AlertsDependencies extends Pick<EndpointDependencies, 'store' | 'clock' | 'maxResultBytes'> {
  readonly states: AlertStates;
  readonly consoleUrl: string | undefined;
  readonly timer: Timer;
  readonly observe: Observe;
}

/** When an alert is evaluated. Times are those of the timer. */
interface Schedule {
  dueAt: number;
  /** When the last evaluation started; undefined: none yet. */
  evaluatedAt?: number;
  /** The same as time of day. */
  lastEvaluation?: string;
  /** When the firing instances were last sent to receivers that forget them. */
  refreshedAt?: number;
  missed: number;
  /** When the first evaluation was due whose result could not be saved, if that was so ever since. */
  unsavedSince?: number | undefined;
}

interface ActiveAlert extends AlertRule {
  readonly endpoint: Endpoint;
  readonly definition: AlertDefinition;
  /** A reload keeps it. */
  readonly schedule: Schedule;
}

/** An alert as clients see it. */
export interface AlertView extends Pick<AlertState, 'name' | 'severity' | 'history'> {
  readonly state: AlertStateName;
  readonly endpoint: string | null;
  readonly every_seconds: number | null;
  readonly silenced_until: string | null;
  readonly last_evaluated_at: string | null;
  readonly missed_evaluations: number;
  readonly undelivered: number;
  readonly instances: readonly Pick<Instance, 'state' | 'cause' | 'key' | 'summary' | 'started_at'>[];
}

const ALERT_STATES = ['ok', 'pending', 'firing', 'error'] as const;
/** `removed`: it is no longer defined. */
type AlertStateName = (typeof ALERT_STATES)[number] | 'removed';

/** Evaluations pause, so that they use at most a fifth of the time of one query slot, as the warmer does. */
const PAUSE_FACTOR = 4;
/** A query that fails after its time limit must not delay all other alerts by minutes. */
const MAX_PAUSE_AFTER_FAILURE_MS = 10_000;
/** Alertmanager forgets its alerts when it restarts. */
const REFRESH_MS = 300_000;
const RESOLVE_REMOVED_MS = 3_600_000;
const MAX_SILENCE_MS = 30 * 86_400_000;
/** Of a row or key as JSON, and of a summary. Long messages would make notifications and states large. */
const MAX_CHARACTERS = 2000;
/** If the endpoint declares no time range, a link leads to this time before the first evaluation that found the problem. */
const DEFAULT_RANGE_MICROS = 3600n * MICROS_PER_SECOND;

export class Alerts {
  readonly #dependencies: AlertsDependencies;
  readonly #delivery: Delivery;
  #receivers: Receivers = new Map();
  #alerts = new Map<string, ActiveAlert>();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #cancelNext = () => {};
  #pausedUntil = 0;
  #removedResolvedAt: number | undefined;

  constructor(dependencies: AlertsDependencies) {
    this.#dependencies = dependencies;
    const { states, timer, observe } = dependencies;
    this.#delivery = new Delivery(states, timer, observe);
  }

  /** Starts to evaluate, or continues with other alerts and receivers. Instances of alerts that are gone resolve. */
  async load(catalog: Catalog, receivers: Receivers): Promise<void> {
    const { timer } = this.#dependencies;
    const now = timer.now();
    const alerts = catalog.endpoints.flatMap(endpoint => {
      const { alert: definition } = endpoint.definition;
      if (definition === undefined) return [];
      return listAlertRules(endpoint.definition).map(rule => {
        const known = this.#alerts.get(rule.name);
        if (known && isDeepStrictEqual(known.endpoint, endpoint)) return [rule.name, known] as const;
        const waitMs = definition.every - (this.#sinceLast(rule.name, definition) ?? definition.every);
        const schedule = known?.schedule ?? { dueAt: now + Math.max(0, waitMs), missed: 0 };
        schedule.dueAt = Math.min(schedule.dueAt, now + definition.every);
        return [rule.name, { ...rule, endpoint, definition, schedule }] as const;
      });
    });
    this.#alerts = new Map(alerts);
    this.#receivers = receivers;
    this.#plan();
    await this.#delivery.setReceivers(receivers); // first: whatever fails below, delivery goes on
    this.#removedResolvedAt = undefined;
    await this.#resolveRemoved();
    this.#delivery.wake();
  }

  /** Resolves the instances of alerts that are gone. Repeats it now and then, because their history becomes old, or after a failure. */
  async #resolveRemoved(): Promise<void> {
    const { timer, states, observe } = this.#dependencies;
    const resolvedAt = this.#removedResolvedAt;
    if (resolvedAt !== undefined && timer.now() - resolvedAt < RESOLVE_REMOVED_MS) return;
    this.#removedResolvedAt = timer.now();
    const isRemoved = (name: string) => !this.#alerts.has(name); // another load may bring it back
    for (const { name } of states.all().filter(each => isRemoved(each.name)))
      try {
        await states.update(name, state => {
          if (isRemoved(name)) resolveAll(state, 'the alert was removed', this.#moment(0));
        });
      } catch (error) {
        this.#removedResolvedAt = undefined;
        observe({ type: 'alert_state_failed', error });
      }
  }

  async close(): Promise<void> {
    this.#closing.abort(new DendroError('unavailable', 'the server stops'));
    this.#cancelNext();
    await this.#delivery.close();
    await this.#running;
    await this.#dependencies.states.idle();
  }

  list(): AlertView[] {
    const { states } = this.#dependencies;
    const removed = states.all().filter(({ name }) => !this.#alerts.has(name));
    return [...this.#alerts.keys(), ...removed.map(({ name }) => name)].sort().map(name => {
      const { severity, instances, silence, history, outbox, last_evaluated } = states.get(name);
      const alert = this.#alerts.get(name);
      return {
        name,
        state: this.#stateOf(name),
        severity: alert?.definition.severity ?? severity,
        endpoint: alert?.endpoint.definition.name ?? null,
        every_seconds: alert === undefined ? null : alert.definition.every / 1000,
        silenced_until: silence?.until ?? null,
        last_evaluated_at: alert?.schedule.lastEvaluation ?? last_evaluated ?? null,
        missed_evaluations: alert?.schedule.missed ?? 0,
        undelivered: outbox.length,
        instances: Object.values(instances).map(({ state, cause, key, summary, started_at }) => {
          return { state, cause, key, summary, started_at };
        }),
        history,
      };
    });
  }

  #stateOf(name: string): AlertStateName {
    if (!this.#alerts.has(name)) return 'removed';
    const instances = Object.values(this.#dependencies.states.get(name).instances);
    if (instances.some(({ cause }) => cause === 'error')) return 'error';
    if (instances.length === 0) return 'ok';
    return instances.some(({ state }) => state === 'firing') ? 'firing' : 'pending';
  }

  /** For metrics. `overdueMs`: how much the last evaluation of an alert is older than its interval, at most. */
  statistics(): {
    readonly countByState: ReadonlyMap<AlertStateName, number>;
    readonly undelivered: number;
    readonly overdueMs: number;
  } {
    const now = this.#dependencies.timer.now();
    const countByState = new Map<AlertStateName, number>(ALERT_STATES.map(state => [state, 0]));
    let overdueMs = 0;
    for (const { name, schedule } of this.#alerts.values()) {
      const state = this.#stateOf(name);
      countByState.set(state, (countByState.get(state) ?? 0) + 1);
      overdueMs = Math.max(overdueMs, now - (schedule.unsavedSince ?? schedule.dueAt));
    }
    const undelivered = this.#dependencies.states.all().reduce((sum, { outbox }) => sum + outbox.length, 0);
    return { countByState, undelivered, overdueMs };
  }

  /** Sends no firing notifications and reminders for a time; 0 ends it. Returns its end. */
  async silence(name: string, ms: number): Promise<string | null> {
    const alert = this.#find(name);
    if (ms > MAX_SILENCE_MS)
      throw new DendroError('invalid_parameter', 'a silence can have at most 30 days', { param: 'seconds' });
    const { states, clock } = this.#dependencies;
    const until = formatTimestamp(clock() + BigInt(ms) * 1000n);
    await states.update(name, state => {
      describeAlert(state, alert);
      // The next evaluation subtracts all of the time since the last one.
      state.silence = ms === 0 ? null : { until, left_ms: ms + this.#elapsedMs(alert) };
    });
    return ms === 0 ? null : until;
  }

  /** Evaluates an alert now, and returns its rows and the notifications as if it had never fired before. Changes nothing. */
  async test(name: string): Promise<{
    readonly rows: readonly Json[];
    readonly no_data: boolean;
    readonly notifications: readonly Json[];
  }> {
    const alert = this.#find(name);
    const { problems } = await this.#evaluate(alert).catch((error: unknown) => {
      if (error instanceof DendroError || isProgrammingError(error)) throw error;
      const [reason] = String((error as Error).message).split('\n', 1); // later lines of the engine quote the SQL
      const message = `the query of the alert fails: ${reason}`;
      throw new DendroError('invalid_parameter', message, { param: 'alert' });
    });
    const state = describeAlert(emptyState(name), alert);
    const rule = { ...this.#ruleOf(alert), for: 0 };
    applyFinding(state, rule, { problems, isComplete: true }, this.#moment(0, alert));
    return {
      rows: [...problems.values()].filter(({ cause }) => cause === 'row').map(({ row }) => row),
      no_data: problems.has('no_data'),
      notifications: state.outbox.flatMap(notification => {
        const receiver = this.#receivers.get(notification.receiver);
        if (receiver === undefined) return [];
        const { body } = toMessage(receiver, notification);
        return { receiver: receiver.name, type: receiver.type, body: JSON.parse(body) };
      }),
    };
  }

  /** Sends a notification about no alert to a receiver. Returns what went wrong; undefined: the receiver accepted it. */
  async sendTest(name: string): Promise<string | undefined> {
    const receiver = this.#receivers.get(name);
    if (receiver === undefined)
      throw new DendroError(
        'invalid_parameter',
        `there is no receiver ${name}; receivers: ${[...this.#receivers.keys()].join(', ') || 'none'}`,
        { param: 'receiver' },
      );
    const { now } = this.#moment(0);
    const summary = 'This is a test of the receiver. There is no problem.';
    const state = { name: 'test', severity: 'info' };
    const item = {
      state: 'resolved',
      cause: 'row',
      key: {},
      summary,
      row: {},
      reason: 'test',
      link: null,
    } as const;
    const items = [{ ...item, id: 'test', severity: state.severity, started_at: now, ended_at: now }];
    try {
      await this.#delivery.send(receiver, createNotification(state, name, items, now));
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  #find(name: string): ActiveAlert {
    const alert = this.#alerts.get(name);
    if (alert === undefined)
      throw new DendroError('invalid_parameter', `there is no alert ${name}; dendro alert list shows them`, {
        param: 'alert',
      });
    return alert;
  }

  #ruleOf({ definition }: ActiveAlert): Rule {
    const notify = [...this.#receivers.keys()].filter(name => definition.notify?.includes(name) ?? true);
    return { ...definition, notify };
  }

  /** Waits for the alert that is due first. Evaluations run one at a time, so they never pile up. */
  #plan(): void {
    this.#cancelNext();
    if (this.#running !== undefined || this.#closing.signal.aborted) return;
    const [next] = [...this.#alerts.values()].sort((a, b) => a.schedule.dueAt - b.schedule.dueAt);
    if (next === undefined) return;
    const { timer } = this.#dependencies;
    const waitMs = Math.max(next.schedule.dueAt, this.#pausedUntil) - timer.now();
    this.#cancelNext = timer.after(Math.max(waitMs, 0), () => {
      this.#running = this.#runAlert(next).finally(() => {
        this.#running = undefined;
        this.#plan();
      });
    });
  }

  async #runAlert(alert: ActiveAlert): Promise<void> {
    const { states, timer, observe } = this.#dependencies;
    const { name, definition, schedule } = alert;
    const { erasures } = states;
    await this.#resolveRemoved();
    const startedAt = timer.now();
    const moment = this.#moment(this.#elapsedMs(alert), alert);
    const { finding, executedMs } = await this.#findOut(alert, startedAt);
    if (this.#closing.signal.aborted) return;
    let outcome: 'failed' | 'ok' = 'error' in finding ? 'failed' : 'ok';
    const maxPauseMs = outcome === 'failed' ? MAX_PAUSE_AFTER_FAILURE_MS : Number.POSITIVE_INFINITY;
    this.#pausedUntil = timer.now() + Math.min(PAUSE_FACTOR * executedMs, maxPauseMs);
    let changes = { fired: 0, resolved: 0, ignored: 0 };
    let isOutdated = false;
    try {
      await states.update(name, state => {
        // The result may have erased records, or be that of an earlier definition.
        isOutdated = states.erasures !== erasures || this.#alerts.get(name) !== alert;
        if (isOutdated) return;
        const rule = this.#ruleOf(alert);
        changes = applyFinding(describeAlert(state, alert), rule, finding, moment);
        this.#refresh(state, alert, rule, moment);
      });
      if (isOutdated) return; // it is still due
      const { fired, resolved, ignored } = changes;
      if (fired + resolved > 0) observe({ type: 'alert_changed', alert: name, fired, resolved });
      if (ignored > 0) observe({ type: 'alert_rows_ignored', alert: name, ignored });
      schedule.unsavedSince = undefined;
      schedule.evaluatedAt = startedAt;
      schedule.lastEvaluation = moment.now;
      this.#delivery.wake();
    } catch (error) {
      outcome = 'failed';
      schedule.unsavedSince ??= schedule.dueAt;
      observe({ type: 'alert_state_failed', error });
    }
    const now = timer.now();
    const intervals = Math.max(1, Math.ceil((now - schedule.dueAt) / definition.every));
    schedule.dueAt += intervals * definition.every;
    schedule.missed += intervals - 1;
    observe({ type: 'alert_evaluated', alert: name, outcome, missed: intervals - 1 });
  }

  /** The time since the last evaluation. */
  #elapsedMs({ name, definition, schedule }: ActiveAlert): number {
    if (schedule.evaluatedAt === undefined) return this.#sinceLast(name, definition) ?? 0;
    return this.#dependencies.timer.now() - schedule.evaluatedAt;
  }

  /** The same after a start: only the time of day is known then. It may have jumped, so it counts for two intervals at most. */
  #sinceLast(name: string, { every }: AlertDefinition): number | undefined {
    const { states, clock } = this.#dependencies;
    const last = parseTimestamp(states.get(name).last_evaluated ?? '');
    return last === undefined ? undefined : Math.min(Math.max(Number(clock() - last) / 1000, 0), 2 * every);
  }

  async #findOut(
    alert: ActiveAlert,
    startedAt: number,
  ): Promise<{ readonly finding: Finding; readonly executedMs: number }> {
    try {
      const { problems, isComplete, result } = await this.#evaluate(alert);
      return { finding: { problems, isComplete }, executedMs: result.timing.executedMs };
    } catch (error) {
      const { timer, observe } = this.#dependencies;
      if (!this.#closing.signal.aborted)
        observe({ type: 'alert_evaluation_failed', alert: alert.name, error });
      const reason = error instanceof DendroError ? error.message : 'the log of the server has the reason';
      return {
        finding: { error: `the query of the alert fails: ${reason}` },
        executedMs: timer.now() - startedAt,
      };
    }
  }

  /** Runs the query as the operator: no pin, no cache, with the priority of background work. */
  async #evaluate(alert: ActiveAlert): Promise<{
    readonly problems: Map<string, Problem>;
    readonly isComplete: boolean;
    readonly result: EndpointResult;
  }> {
    const { store, clock, maxResultBytes, observe } = this.#dependencies;
    const { endpoint, values, definition } = alert;
    const request = { id: 'alert', signal: this.#closing.signal };
    const dependencies = { store, clock, maxResultBytes, observe };
    const { value: result } = await runEndpoint(dependencies, endpoint, values, {
      request,
      isBackground: true,
    });
    const { clipped, missingParts, dataThrough } = result.notes;
    const problems = await toProblems(alert, result);
    const oldest = clock() - BigInt(definition.no_data?.alert ?? 0) * 1000n;
    const isDataMissing =
      definition.no_data !== undefined &&
      (dataThrough === undefined || (parseTimestamp(dataThrough) ?? 0n) < oldest);
    if (isDataMissing) {
      const since = dataThrough === undefined ? '' : ` since ${dataThrough}`;
      const summary = `no records of kind ${kindOf(alert)}${since}`;
      problems.set('no_data', { cause: 'no_data', key: {}, summary, row: {} });
    }
    const isCut = clipped.some(reason => reason !== 'retention') || missingParts > 0;
    return { problems, isComplete: !isCut && !isDataMissing, result };
  }

  /** Sends firing instances again to receivers that forget them, unless an earlier notification still waits. */
  #refresh(state: AlertState, { schedule }: ActiveAlert, rule: Rule, moment: Moment): void {
    const startedAt = this.#dependencies.timer.now();
    if (startedAt - (schedule.refreshedAt ?? Number.NEGATIVE_INFINITY) < REFRESH_MS) return;
    schedule.refreshedAt = startedAt;
    for (const receiver of rule.notify) {
      const isForgetful = this.#receivers.get(receiver)?.type === 'alertmanager';
      if (!isForgetful || state.outbox.some(each => each.receiver === receiver)) continue;
      const items = Object.entries(state.instances)
        .filter(([, { notified }]) => notified.includes(receiver))
        .map(([id, instance]) => toItem(state, id, instance, moment));
      if (items.length > 0) state.outbox.push(createNotification(state, receiver, items, moment.now));
    }
  }

  #moment(elapsedMs: number, alert?: ActiveAlert): Moment {
    const { clock, consoleUrl } = this.#dependencies;
    const now = clock();
    const range = alert && findReadRange(alert.endpoint.definition, alert.values, now);
    const from = formatTimestamp(range?.start ?? now - DEFAULT_RANGE_MICROS);
    return { elapsedMs, now: formatTimestamp(now), from, consoleUrl };
  }
}

function kindOf({ endpoint, values }: ActiveAlert): string {
  return selectKind(endpoint.definition, values);
}

/** Saves what notifications need, also after the alert was removed. */
function describeAlert(state: AlertState, alert: ActiveAlert): AlertState {
  state.severity = alert.definition.severity;
  state.kind = kindOf(alert);
  state.parameters = alert.parameters;
  return state;
}

/** The rows by instance. Of several rows with the same key, the first one counts. */
async function toProblems(
  { endpoint: { definition: endpoint }, definition }: ActiveAlert,
  { rows }: EndpointResult,
): Promise<Map<string, Problem>> {
  const encoding = { format: 'json', isoTimestamps: true } as const;
  const { body } = await encodeRows(listColumns(endpoint), rows, encoding);
  const { result } = JSON.parse(body.toString()) as { result: Json[] };
  const problems = new Map<string, Problem>();
  for (const row of result) {
    const key = Object.fromEntries(definition.key.map(column => [column, row[column]]));
    const id = hash('sha256', JSON.stringify(key)); // of the whole texts
    if (problems.has(id)) continue;
    const fill = (text: string) => text.replace(PLACEHOLDER, (_, column: string) => toText(row[column]));
    const summary = toText(shorten(fill(definition.summary ?? endpoint.description), MAX_CHARACTERS));
    problems.set(id, { cause: 'row', key: shortenTexts(key), summary, row: shortenTexts(row) });
  }
  return problems;
}

/** If the row is too long, all texts get an equal share. */
function shortenTexts(row: Json): Json {
  if (JSON.stringify(row).length <= MAX_CHARACTERS) return row;
  const max = Math.floor(MAX_CHARACTERS / Object.keys(row).length);
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, shorten(value, max)]));
}

function shorten(value: unknown, max: number): unknown {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  const text = toText(value);
  if (text.length <= max) return value;
  const start = text.slice(0, max).toWellFormed();
  // Not in the middle of an IP address: redaction would not recognize the rest.
  return `${start.replace(/[0-9a-f.:%]+$/i, '')}…`;
}
