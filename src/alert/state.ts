// The state of all alerts: instances, silences, history and undelivered notifications. Each alert has one file in the data directory,
// which is replaced atomically and durably. So a change of an instance and the notifications about it are one write: a crash loses
// neither, and a notification is sent only after it is on disk.

import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import type { Observe } from '../observe/event.ts';
import type { EraseScope } from '../store/store.ts';
import { createDirectory, syncDirectory, writeFileDurably } from '../system/files.ts';
import { Mutex } from '../system/mutex.ts';

export type Json = Readonly<Record<string, unknown>>;

/** A problem that an evaluation found. */
export interface Problem {
  /** `row`: the query returned it. `no_data`: there are no new records. `error`: the query fails. */
  readonly cause: 'row' | 'no_data' | 'error';
  /** The values of the key columns. */
  readonly key: Json;
  readonly summary: string;
  readonly row: Json;
}

// The names of the fields below are part of the on-disk format. Times of day are RFC 3339; durations do not depend on them, except
// that over a restart.

export interface Instance extends Problem {
  state: 'pending' | 'firing';
  /** That with which it fired, so that Alertmanager recognizes it until its end. */
  severity: string;
  readonly started_at: string;
  /** The start of the records to look at. */
  readonly from: string;
  /** Of a pending instance: how long its row has persisted. Of a firing one: the time since its last notification. */
  elapsed_ms: number;
  /** Successful evaluations in a row without it. */
  missed: number;
  /** The receivers that were told that it fires. They will be told that it resolved. */
  notified: string[];
  /** Those of them for whom a notification about it was dropped before they accepted it. */
  lost?: string[];
}

/** What a notification says about an instance. `error`: the query fails, so the state of the instances is unknown. */
export interface Item extends Problem {
  /** Of the instance. */
  readonly id: string;
  readonly state: 'firing' | 'error' | 'resolved';
  readonly severity: string;
  readonly started_at: string;
  readonly ended_at: string | null;
  /** Why it resolved. */
  readonly reason: string | null;
  /** The records in the console; null: its address is unknown. */
  readonly link: string | null;
}

export interface Notification {
  /** The idempotency id. */
  readonly id: string;
  readonly receiver: string;
  readonly alert: string;
  readonly severity: string;
  readonly created_at: string;
  readonly items: readonly Item[];
  /** How long it has waited because deliveries failed. */
  waited_ms: number;
}

/** An instance that has resolved. */
export interface Ended extends Pick<Item, 'cause' | 'key' | 'summary' | 'started_at' | 'reason'> {
  readonly ended_at: string;
}

type Erasable = Pick<Item, 'key' | 'summary' | 'started_at'> & { readonly row?: Json };

export interface AlertState {
  readonly version: 1;
  readonly name: string;
  severity: string;
  /** The log kind of the records, or `all`. */
  kind: string;
  /** The parameters of the alert, so that an erasure finds its project. */
  parameters: Readonly<Record<string, string>>;
  /** The time of day of the last evaluation; null if nothing depends on it, so that the file of a quiet alert is not written. */
  last_evaluated: string | null;
  /** Failed evaluations in a row, at most MAX_FAILURES. */
  failures: number;
  /** Ends at `until`, or after `left_ms`, whichever comes first: a clock that jumps cannot prolong it. */
  silence: { readonly until: string; left_ms: number } | null;
  instances: Record<string, Instance>;
  /** Newest last. */
  history: Ended[];
  /** Oldest first. */
  outbox: Notification[];
}

/** Of the file of one alert. Beyond it, a new notification replaces the oldest undelivered ones. */
const MAX_STATE_CHARACTERS = 8 * 1024 * 1024;
/** Of all files, which are in memory too. */
const MAX_CHARACTERS = 16 * MAX_STATE_CHARACTERS;
const SET_ASIDE = '.unreadable';

export class AlertStates {
  readonly #directory: string;
  readonly #observe: Observe;
  readonly #mutex = new Mutex();
  readonly #states = new Map<string, AlertState>();
  /** The length of each file. */
  readonly #lengths = new Map<string, number>();
  #isDirectoryCreated = false;
  /** The number of erasures. A result that was read before an erasure must not be used after it. */
  erasures = 0;

  /** Reads the files. One that is no JSON is set aside: its instances are reported again. Throws OperatorError for other problems. */
  constructor(dataDirectory: string, observe: Observe) {
    this.#directory = join(dataDirectory, 'alerts');
    this.#observe = observe;
    try {
      // A killed process can leave the file of an unfinished write. It may contain a project that is erased later.
      for (const file of this.#list('.new')) rmSync(file);
      for (const file of this.#list('.json')) this.#read(file);
    } catch (error) {
      throw new OperatorError(`cannot read the state of the alerts: ${(error as Error).message}`);
    }
  }

  #list(suffix: string): string[] {
    const entries = existsSync(this.#directory) ? readdirSync(this.#directory, { withFileTypes: true }) : [];
    return entries
      .filter(entry => !entry.isDirectory() && entry.name.endsWith(suffix))
      .map(({ name }) => join(this.#directory, name));
  }

  #read(file: string): void {
    const text = readFileSync(file, 'utf8');
    let state: AlertState | null;
    try {
      state = JSON.parse(text) as AlertState | null;
    } catch (error) {
      renameSync(file, file + SET_ASIDE);
      this.#observe({ type: 'alert_state_unreadable', file: file + SET_ASIDE, error });
      return;
    }
    if (state?.version !== 1)
      throw new Error(`${file} has the version ${state?.version}; this release of Dendro reads version 1`);
    this.#set(state, text);
  }

  #set(state: AlertState, text: string): void {
    this.#states.set(state.name, state);
    this.#lengths.set(state.name, text.length);
  }

  /** The current states. The caller must not change them. */
  all(): AlertState[] {
    return [...this.#states.values()];
  }

  get(name: string): AlertState {
    return this.#states.get(name) ?? emptyState(name);
  }

  /**
   * Changes the state of an alert. It takes effect when it is durable: if this throws, nothing has changed. Changes do not overlap.
   */
  update(name: string, change: (state: AlertState) => void): Promise<void> {
    return this.#mutex.run(() => this.#update(name, change));
  }

  /**
   * Removes what belongs to a project: instances, history and notifications with its name as a word of a value, of the text or of a
   * parameter of the alert, and files that were set aside. An instance that is removed without need is reported again.
   */
  erase({ project, beforeMicros }: EraseScope): Promise<void> {
    return this.#mutex.run(async () => {
      this.erasures++;
      for (const file of this.#list(SET_ASIDE)) rmSync(file);
      const pattern = createPattern(project);
      const hasProject = (values: Json) =>
        Object.values(values).some(each =>
          pattern.test(typeof each === 'string' ? each : JSON.stringify(each)),
        );
      for (const { name } of this.all())
        await this.#update(name, state => {
          const isKept = ({ key, row, summary, started_at }: Erasable) =>
            ![state.parameters, key, row ?? {}, { summary }].some(hasProject) ||
            (beforeMicros !== undefined && (parseTimestamp(started_at) ?? 0n) >= beforeMicros);
          state.instances = Object.fromEntries(
            Object.entries(state.instances).filter(([, each]) => isKept(each)),
          );
          state.history = state.history.filter(isKept);
          state.outbox = state.outbox
            .map(each => ({ ...each, items: each.items.filter(isKept) }))
            .filter(({ items }) => items.length > 0);
        });
    });
  }

  async #update(name: string, change: (state: AlertState) => void): Promise<void> {
    const before = JSON.stringify(this.get(name));
    const state = JSON.parse(before) as AlertState;
    change(state);
    let text = JSON.stringify(state);
    const dropped = this.#trim(state, text.length);
    if (dropped.length > 0) text = JSON.stringify(state);
    if (text === before || (isEmpty(state) && !this.#states.has(name))) return;
    const file = join(this.#directory, `${hash('sha256', name).slice(0, 32)}.json`);
    // Not each time: it waits for the disk.
    if (!this.#isDirectoryCreated || !existsSync(this.#directory)) createDirectory(this.#directory);
    this.#isDirectoryCreated = true;
    if (isEmpty(state)) {
      rmSync(file, { force: true });
      await syncDirectory(this.#directory);
      this.#states.delete(name);
      this.#lengths.delete(name);
    } else {
      await writeFileDurably(file, text);
      this.#set(state, text);
    }
    for (const { receiver } of dropped)
      this.#observe({ type: 'notification_dropped', receiver, reason: 'too many wait' });
  }

  /** Makes room for a notification that a change has added: drops earlier ones. */
  #trim(state: AlertState, length: number): readonly Notification[] {
    const earlier = new Set(this.get(state.name).outbox.map(({ id }) => id));
    if (state.outbox.every(({ id }) => earlier.has(id))) return [];
    let others = -(this.#lengths.get(state.name) ?? 0);
    for (const each of this.#lengths.values()) others += each;
    let excess = length - Math.min(MAX_STATE_CHARACTERS, MAX_CHARACTERS - others);
    return dropNotifications(state, each => {
      if (excess <= 0 || !earlier.has(each.id)) return false;
      excess -= JSON.stringify(each).length;
      return true;
    });
  }

  /** Resolves when all changes so far are done. */
  idle(): Promise<void> {
    return this.#mutex.idle();
  }
}

/** The name as a whole word: acme, but not acme-staging. The end of an escape before it, such as \n or %2F, is no part of a word. */
function createPattern(project: string): RegExp {
  const [name, escaped] = [project, JSON.stringify(project).slice(1, -1)].map(each =>
    each.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'),
  );
  const word = '[\\p{L}\\p{N}_-]';
  const escapeEnd = String.raw`\\[bfnrt]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}`;
  return new RegExp(`(?:(?<!${word})|(?<=${escapeEnd}))(?:${name}|${escaped})(?!${word})`, 'u');
}

/** Returns what it dropped. A receiver that may not know that an instance fires is told when nothing waits for it any more. */
export function dropNotifications(
  state: AlertState,
  isDropped: (each: Notification) => boolean,
): readonly Notification[] {
  const dropped = state.outbox.filter(isDropped);
  const ids = new Set(dropped.map(({ id }) => id));
  state.outbox = state.outbox.filter(({ id }) => !ids.has(id));
  for (const { receiver, items } of dropped)
    for (const { id, state: itemState, started_at } of items) {
      const instance = state.instances[id];
      if (itemState !== 'resolved' && instance?.started_at === started_at)
        instance.lost = [...new Set([...(instance.lost ?? []), receiver])];
    }
  return dropped;
}

export function emptyState(name: string): AlertState {
  return {
    ...{ version: 1, name, severity: 'warning', kind: 'all', parameters: {}, last_evaluated: null },
    ...{ failures: 0, silence: null, instances: {}, history: [], outbox: [] },
  };
}

function isEmpty({ failures, silence, instances, history, outbox }: AlertState): boolean {
  const isQuiet = failures === 0 && silence === null && history.length === 0 && outbox.length === 0;
  return isQuiet && Object.keys(instances).length === 0;
}
