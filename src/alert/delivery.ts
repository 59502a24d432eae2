// Delivers notifications. Each alert has a queue for each receiver: one request at a time, in order, with back-off. So neither a dead
// receiver nor a notification that is refused delays another one. A notification that was not delivered within a day is dropped.
import type { Observe } from '../observe/event.ts';
import type { Timer } from '../system/timer.ts';
import { toMessage } from './message.ts';
import type { Receiver, Receivers } from './receivers.ts';
import { type AlertStates, dropNotifications, type Notification } from './state.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const MAX_BACKOFF_MS = 300_000;
const MAX_WAIT_MS = 86_400_000;

export class Delivery {
  readonly #states: AlertStates;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #receivers: Receivers = new Map();
  /** For each alert and receiver, while notifications wait. */
  readonly #queues = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  /** The ids of notifications that were accepted, but are still in the state, because it could not be written. */
  readonly #accepted = new Set<string>();

  constructor(states: AlertStates, timer: Timer, observe: Observe) {
    this.#states = states;
    this.#timer = timer;
    this.#observe = observe;
  }

  /** Forgets the receivers that no longer exist, drops their notifications, and starts to deliver the others. */
  async setReceivers(receivers: Receivers): Promise<void> {
    this.#receivers = receivers;
    const exists = (receiver: string) => this.#receivers.has(receiver); // a later call may have replaced them
    for (const { name } of this.#states.all())
      try {
        await this.#states.update(name, ({ instances }) => {
          for (const each of Object.values(instances)) each.notified = each.notified.filter(exists);
        });
        await this.#drop(name, ({ receiver }) => !exists(receiver), 'the receiver does not exist');
      } catch (error) {
        this.#observe({ type: 'alert_state_failed', error });
      }
    this.wake();
  }

  /** Starts to deliver what is new. Does not shorten the wait after a failure. */
  wake(): void {
    for (const { name, outbox } of this.#states.all())
      for (const receiver of new Set(outbox.map(each => each.receiver))) {
        const id = JSON.stringify([name, receiver]);
        if (this.#queues.has(id)) continue;
        const running = Promise.resolve().then(() => this.#run(name, receiver, id));
        this.#queues.set(id, running);
      }
  }

  /** Aborts running requests. Their notifications are sent again after the next start, unless the response is already there. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#queues.values());
  }

  async #run(alert: string, receiver: string, id: string): Promise<void> {
    try {
      for (let failures = 0; ; ) {
        const next = this.#states.get(alert).outbox.find(each => each.receiver === receiver);
        const target = this.#receivers.get(receiver);
        if (next === undefined || target === undefined || this.#closing.signal.aborted) return;
        if (await this.#deliver(next, target)) failures = 0;
        else await this.#wait(next, Math.min(1000 * 2 ** failures++, MAX_BACKOFF_MS));
      }
    } finally {
      this.#queues.delete(id); // at once: a notification that arrives now must not wait for the next one
    }
  }

  /** Whether the receiver accepted it and the state says so. */
  async #deliver(notification: Notification, target: Receiver): Promise<boolean> {
    const { id, alert, receiver } = notification;
    try {
      if (!this.#accepted.has(id)) await this.send(target, notification);
      this.#accepted.add(id);
      await this.#states.update(alert, state => {
        state.outbox = state.outbox.filter(each => each.id !== id);
      });
      this.#accepted.delete(id);
      this.#observe({ type: 'notification_sent', receiver });
      return true;
    } catch (error) {
      if (this.#accepted.has(id)) this.#observe({ type: 'alert_state_failed', error });
      else if (!this.#closing.signal.aborted) this.#observe({ type: 'notification_failed', receiver, error });
      return false;
    }
  }

  /** After a failure. Later notifications wait as well, but are only dropped after an attempt of their own. */
  async #wait({ id, alert, receiver }: Notification, ms: number): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) return;
    const isExpired = (each: Notification) => each.id === id && each.waited_ms + ms > MAX_WAIT_MS;
    try {
      if (await this.#drop(alert, isExpired, 'it was not delivered within a day')) return;
      await this.#states.update(alert, ({ outbox }) => {
        for (const each of outbox) if (each.receiver === receiver) each.waited_ms += ms;
      });
    } catch {} // then they may wait a little longer
    if (signal.aborted) return;
    await new Promise<void>(resolve => {
      const cancel = this.#timer.after(ms, end);
      signal.addEventListener('abort', end);
      function end() {
        cancel();
        signal.removeEventListener('abort', end);
        resolve();
      }
    });
  }

  async #drop(alert: string, isDropped: (each: Notification) => boolean, reason: string): Promise<boolean> {
    if (!this.#states.get(alert).outbox.some(isDropped)) return false;
    let dropped: readonly Notification[] = [];
    await this.#states.update(alert, state => {
      dropped = dropNotifications(state, isDropped);
    });
    for (const { receiver } of dropped) this.#observe({ type: 'notification_dropped', receiver, reason });
    return true;
  }

  /** Throws if the receiver does not accept it. The error contains neither its address nor its response. */
  async send(receiver: Receiver, notification: Notification): Promise<void> {
    const { url, headers, body } = toMessage(receiver, notification);
    const controller = new AbortController();
    const abort = () => controller.abort();
    this.#closing.signal.addEventListener('abort', abort);
    const stopTimer = this.#timer.after(REQUEST_TIMEOUT_MS, abort);
    const request = { method: 'POST', headers, body, signal: controller.signal, redirect: 'manual' as const };
    const response = await fetch(url, request)
      .catch(error => {
        if (controller.signal.aborted) throw new Error(`no response within ${REQUEST_TIMEOUT_MS / 1000} s`);
        const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
        throw new Error(`the request failed: ${code ?? message}`);
      })
      .finally(() => {
        stopTimer();
        this.#closing.signal.removeEventListener('abort', abort);
      });
    await response.body?.cancel().catch(() => {});
    if (response.status >= 300 && response.status < 400)
      throw new Error(`status ${response.status}: redirects are not followed`);
    if (!response.ok) throw new Error(`status ${response.status}`);
  }
}
