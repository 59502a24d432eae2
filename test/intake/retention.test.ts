import { afterEach, beforeEach, expect, test } from 'vitest';
import { micros, NOW, startTestApp, type TestApp } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, record } from '../support/record.ts';

const HOUR = 60;
const DAY = 24 * HOUR;
const MICROS_PER_MINUTE = 60_000_000n;

let app: TestApp;
beforeEach(async () => {
  app = await startTestApp({}, new ManualTimer());
});
afterEach(() => app.close());

const minutes = (count: number) => BigInt(count) * MICROS_PER_MINUTE;
/** Advances clock and timer one minute at a time. */
const passMinutes = async (count: number) => {
  for (let minute = 0; minute < count; minute++) await app.pass(60_000);
  await new Promise(resolve => setTimeout(resolve, 100)); // time for background work to finish
};
/**
 * Polls, and lets half an hour more pass meanwhile: on a busy machine, a round of the background work can take many of these minutes,
 * and only the next round sees a jump of the clock.
 */
const pollPassing = (read: () => Promise<unknown>) => {
  let minutesLeft = 30;
  return expect.poll(
    async () => {
      if (minutesLeft-- > 0) await app.pass(60_000);
      return read();
    },
    { interval: 500 },
  );
};
const jumpClock = (by: bigint) => app.setNow(new Date(Number((micros(NOW) + by) / 1000n)).toISOString());
const storeRecords = (...ages: number[]) =>
  app.append(
    'edge',
    ages.map(age => edgeRecord({ id: `age-${age}`, project: 'p', at: micros(NOW) - minutes(age) })),
  );
const eventsOfType = (type: string) => app.events.filter(event => event.type === type);

test('records of every kind are removed when they are older than the retention', async () => {
  await storeRecords(0, 90 * DAY - 10 * HOUR, 90 * DAY - 90);
  await app.append('auth', [record({ project: 'p', at: micros(NOW) - minutes(90 * DAY - 90) })]);
  await passMinutes(80);
  expect(await idsOf(app, 'p')).toHaveLength(3);
  await passMinutes(60);
  await pollPassing(() => idsOf(app, 'p')).toEqual(['age-0', `age-${90 * DAY - 10 * HOUR}`]);
  await pollPassing(() => idsOf(app, 'p', 'auth')).toEqual([]);
  // The part of the auth record was deleted. The part of the edge records stays until its oldest record has been expired for 9 days.
  await expect.poll(() => eventsOfType('records_expired')).toEqual([{ type: 'records_expired', count: 1 }]);
  await passMinutes(10 * HOUR);
  await pollPassing(() => idsOf(app, 'p')).toEqual(['age-0']);
});

test('no record is removed in the first hour, so that a wrong clock can be corrected after the start', async () => {
  await storeRecords(91 * DAY);
  await passMinutes(59);
  expect(await idsOf(app, 'p')).toHaveLength(1);
  await passMinutes(2);
  await pollPassing(() => idsOf(app, 'p')).toHaveLength(0);
});

test('a clock that jumps far ahead removes no record until an hour has passed', async () => {
  await storeRecords(1);
  await passMinutes(5 * HOUR);
  jumpClock(minutes(400 * DAY));
  await passMinutes(59);
  expect(await idsOf(app, 'p')).toHaveLength(1);
  expect(eventsOfType('clock_jumped')).toEqual([{ type: 'clock_jumped', seconds: expect.any(Number) }]);
  await passMinutes(3);
  await pollPassing(() => idsOf(app, 'p')).toHaveLength(0);
});

test('a clock that jumps far ahead and returns within an hour removes no record', async () => {
  await storeRecords(1);
  for (let time = 0; time < 4; time++) {
    await passMinutes(2 * HOUR);
    jumpClock(minutes(400 * DAY));
    await passMinutes(50);
    jumpClock(minutes(3 * HOUR * (time + 1)));
    await passMinutes(50);
  }
  expect(await idsOf(app, 'p')).toHaveLength(1);
  expect(eventsOfType('clock_jumped')).toHaveLength(8);
});

test('a clock that is corrected by a few minutes does not delay the removal', async () => {
  await storeRecords(90 * DAY - 30);
  await passMinutes(50);
  jumpClock(minutes(55));
  await passMinutes(15);
  await pollPassing(() => idsOf(app, 'p')).toHaveLength(0);
  expect(eventsOfType('clock_jumped')).toEqual([]);
});

test('records from the intake are removed after they are flushed', async () => {
  const timestamp = new Date(Number((micros(NOW) - minutes(90 * DAY - 30)) / 1000n)).toISOString();
  expect((await sendLogs(app.internalUrl, { project: 'p', message: 'm', timestamp })).status).toBe(200);
  await expect.poll(() => idsOf(app, 'p')).toHaveLength(1);
  await passMinutes(4 * HOUR);
  await pollPassing(() => idsOf(app, 'p')).toHaveLength(0);
});
