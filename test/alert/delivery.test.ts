// How long and how often a notification is tried. A day passes in milliseconds.
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Delivery } from '../../src/alert/delivery.ts';
import { type AlertState, AlertStates, type Item } from '../../src/alert/state.ts';
import { createNotification, resolveAll } from '../../src/alert/transition.ts';
import type { Event } from '../../src/observe/event.ts';
import { useDirectory } from '../support/hooks.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { TestReceiver } from '../support/receiver.ts';

const NOW = '2026-11-14T12:00:00Z';
const directory = useDirectory();
let receiver: TestReceiver;
let timer: ManualTimer;
let states: AlertStates;
let delivery: Delivery;
let events: Event[];
beforeEach(async () => {
  receiver = await TestReceiver.start();
  timer = new ManualTimer();
  events = [];
  states = new AlertStates(directory, event => void events.push(event));
  delivery = new Delivery(states, timer, event => void events.push(event));
});
afterEach(async () => {
  await delivery.close();
  await receiver.stop();
});

const setReceivers = (others: Readonly<Record<string, string>> = {}) =>
  delivery.setReceivers(
    new Map(
      Object.entries({ ...others, ops: receiver.url }).map(([name, url]) => [
        name,
        { name, type: 'webhook' as const, url, redact: false },
      ]),
    ),
  );
const createItem = (summary: string): Item => ({
  ...{ id: 'x', state: 'firing', cause: 'row', severity: 'info', key: { summary }, summary, row: {} },
  ...{ started_at: NOW, ended_at: null, reason: null, link: null },
});
const enqueue = (alert: string, summary: string, name = 'ops') =>
  states.update(alert, state => {
    const items = [createItem(summary)];
    state.outbox.push(createNotification({ name: alert, severity: 'info' }, name, items, NOW));
  });
const countOf = (type: Event['type']) => events.filter(event => event.type === type).length;
const attempts = () => countOf('notification_failed');

test('a notification is tried after 1 s, 2 s, 4 s and so on, every 5 minutes at most, and dropped after a day', async () => {
  receiver.behaviour = 500;
  await enqueue('a', 'one');
  await setReceivers();
  const waits = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300];
  for (const [index, seconds] of waits.entries()) {
    await expect.poll(attempts).toBe(index + 1);
    await expect.poll(() => timer.isWaiting).toBe(true);
    expect(countOf('notification_dropped')).toBe(0);
    await timer.advance(seconds * 1000 - 1);
    expect(timer.isWaiting).toBe(true);
    expect(receiver.requests).toHaveLength(index + 1);
    if (index === 9)
      await states.update('a', ({ outbox: [first] }) => {
        if (first !== undefined) first.waited_ms = 86_400_000 - 600_000;
      });
    await timer.advance(1);
  }
  await expect.poll(() => countOf('notification_dropped')).toBe(1);
  expect(states.all()).toEqual([]);
});

test.each([500, 302, 'hang'] as const)(
  'a receiver that fails with %s gets the same notification later, and does not delay another one',
  async behaviour => {
    const other = await TestReceiver.start();
    try {
      receiver.behaviour = behaviour;
      for (const name of ['ops', 'other']) await enqueue('a', 'one', name);
      await setReceivers({ other: other.url });
      await expect.poll(() => receiver.requests.length).toBe(1);
      await expect.poll(() => other.instances()).toEqual(['firing one']);
      await expect.poll(() => countOf('notification_sent')).toBe(1);
      if (behaviour === 'hang') await timer.advance(10_000);
      await expect.poll(attempts).toBe(1);
      const errors = events.flatMap(event => ('error' in event ? String(event.error) : []));
      expect(errors.join()).not.toMatch(/secret response|127\.0\.0\.1/);
      receiver.behaviour = 200;
      await expect.poll(() => timer.isWaiting).toBe(true);
      await timer.advance(1000);
      await expect.poll(() => countOf('notification_sent')).toBe(2);
      const [first, ...rest] = receiver.requests;
      const id = first?.headers['idempotency-key'];
      expect(rest).toMatchObject([{ path: '/', text: first?.text, headers: { 'idempotency-key': id } }]);
    } finally {
      await other.stop();
    }
  },
);

test('the notifications of an alert are delivered in order', async () => {
  for (const summary of ['one', 'two', 'three']) await enqueue('a', summary);
  await setReceivers();
  await expect.poll(() => receiver.instances()).toEqual(['firing one', 'firing two', 'firing three']);
  await expect.poll(() => states.all()).toEqual([]);
});

test('a notification that the receiver refuses does not delay those of other alerts', async () => {
  receiver.refuse = ({ body }) => body.alert === 'a';
  await enqueue('a', 'one');
  await setReceivers();
  for (const attempt of [1, 2, 3, 4]) {
    await expect.poll(attempts).toBe(attempt);
    await expect.poll(() => timer.isWaiting).toBe(true);
    await timer.advance(2 ** (attempt - 1) * 1000);
  }
  await expect.poll(attempts).toBe(5);
  await enqueue('b', 'two');
  delivery.wake();
  await expect.poll(() => countOf('notification_sent')).toBe(1);
  expect(attempts()).toBe(5);
});

test('a notification that is refused for a day is dropped alone, and its instance is reported again', async () => {
  receiver.refuse = ({ body }) => body.instances[0].summary === 'one';
  await states.update('a', addFiringInstance);
  for (const summary of ['one', 'two']) await enqueue('a', summary);
  await states.update('a', ({ outbox }) => {
    for (const each of outbox) each.waited_ms = 86_400_000;
  });
  await setReceivers();
  await expect
    .poll(() => receiver.requests.map(({ body }) => body.instances[0].summary))
    .toEqual(['one', 'two']);
  await expect.poll(() => states.get('a').outbox).toEqual([]);
  expect([countOf('notification_dropped'), countOf('notification_sent')]).toEqual([1, 1]);
  expect(states.get('a').instances['x']?.lost).toEqual(['ops']);
});

test('a notification that was accepted is not sent again if the state cannot be written', async () => {
  await states.update('a', addFiringInstance);
  await enqueue('a', 'one');
  const folder = join(directory, 'alerts');
  const blocked = join(folder, `${readdirSync(folder)[0]}.new`);
  mkdirSync(blocked);
  await setReceivers();
  const failures = () => countOf('alert_state_failed');
  for (const count of [1, 2]) {
    await expect.poll(failures).toBe(count);
    await expect.poll(() => timer.isWaiting).toBe(true);
    if (count === 2) rmdirSync(blocked);
    await timer.advance(count * 1000);
  }
  await expect.poll(() => countOf('notification_sent')).toBe(1);
  expect(receiver.requests).toHaveLength(1);
  expect(attempts()).toBe(0);
  expect(states.get('a').outbox).toEqual([]);
});

function addFiringInstance(state: AlertState): void {
  const problem = { cause: 'row', key: {}, summary: 'x', row: {} } as const;
  const more = {
    severity: 'info',
    started_at: NOW,
    from: NOW,
    elapsed_ms: 0,
    missed: 0,
    notified: ['gone', 'ops'],
  };
  state.instances['x'] = { ...problem, ...more, state: 'firing' };
}

test('a receiver that no longer exists is not told that an instance resolved', async () => {
  await states.update('a', addFiringInstance);
  await setReceivers();
  await states.update('a', state => resolveAll(state, 'test', { elapsedMs: 0, now: NOW, from: NOW }));
  expect(states.get('a').outbox.map(each => each.receiver)).toEqual(['ops']);
});

test('notifications for a receiver that no longer exists are dropped, which is reported', async () => {
  await enqueue('a', 'one', 'gone');
  await setReceivers();
  expect(events).toEqual([
    { type: 'notification_dropped', receiver: 'gone', reason: 'the receiver does not exist' },
  ]);
  expect(states.all()).toEqual([]);
});

test('no notification is dropped because of others of the same change, however large they are', async () => {
  const add = () =>
    states.update('a', state => {
      for (const name of ['ops', 'team', 'am']) {
        const items = [createItem('x'.repeat(2_000_000))];
        state.outbox.push(createNotification(state, name, items, NOW));
      }
    });
  await add();
  await states.update('a', state => void Object.assign(state, { failures: 1 }));
  expect(states.get('a').outbox).toHaveLength(3);
  expect(countOf('notification_dropped')).toBe(0);
  await add();
  expect(states.get('a').outbox).toHaveLength(3);
  expect(countOf('notification_dropped')).toBe(3);
});

test('many notifications are dropped in one step, and none before the state is written', async () => {
  const add = (count: number, characters: number) =>
    states.update('a', state => {
      for (let index = 0; index < count; index++) {
        const items = [createItem('x'.repeat(characters))];
        state.outbox.push(createNotification(state, 'ops', items, NOW));
      }
    });
  await add(2000, 4000);
  const folder = join(directory, 'alerts');
  const blocked = join(folder, `${readdirSync(folder)[0]}.new`);
  mkdirSync(blocked);
  await expect(add(1, 1_000_000)).rejects.toThrow();
  expect(countOf('notification_dropped')).toBe(0);
  rmdirSync(blocked);
  const startedAt = performance.now();
  await add(1, 1_000_000);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  expect(states.get('a').outbox).toHaveLength(2001 - countOf('notification_dropped'));
  expect(states.get('a').outbox.length).toBeGreaterThan(700);
});

test('the state of an alert has at most 8 MiB: the oldest notifications are dropped', async () => {
  for (let index = 0; index < 5; index++) await enqueue('a', `${index}${'x'.repeat(1_000_000)}`);
  expect(countOf('notification_dropped')).toBeGreaterThan(0);
  expect(states.get('a').outbox[0]?.items[0]?.summary).not.toMatch(/^0/);
  expect(JSON.stringify(states.get('a')).length).toBeLessThan(8 * 1024 * 1024);
});
