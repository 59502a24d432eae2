import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { Maintenance } from '../../src/store/maintenance.ts';
import type { Store } from '../../src/store/store.ts';
import { flushPromises, ManualTimer } from '../support/manual-timer.ts';

/** What each call of a job does: true for work, false for none, or an error to throw. */
type Outcomes = (boolean | Error)[];

function startMaintenance(compactions: Outcomes, vacuums: Outcomes, tookMs = { compact: 0, vacuum: 0 }) {
  const timer = new ManualTimer();
  const calls: string[] = [];
  const events: Event[] = [];
  const runNext = (name: 'compact' | 'vacuum', outcomes: Outcomes) => async () => {
    calls.push(name);
    if (tookMs[name] > 0) await new Promise<void>(resolve => timer.after(tookMs[name], resolve));
    const outcome = outcomes.shift() ?? false;
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const store = {
    compact: runNext('compact', compactions),
    vacuum: runNext('vacuum', vacuums),
  } as Partial<Store> as Store;
  const maintenance = new Maintenance(
    store,
    () => 0n,
    timer,
    event => events.push(event),
  );
  maintenance.start();
  return { timer, calls, events, close: () => maintenance.close() };
}

describe('maintenance of the store', () => {
  test('compacts every 10 s, and vacuums when there is nothing to compact', async () => {
    const { timer, calls, events } = startMaintenance([], []);
    await timer.advance(9_999);
    expect(calls).toEqual([]);
    await timer.advance(1);
    expect(calls).toEqual(['compact', 'vacuum']);
    await timer.advance(10_000);
    expect(calls).toEqual(['compact', 'vacuum', 'compact', 'vacuum']);
    expect(events).toEqual([]);
  });

  test('repeats a job at once as long as there is work', async () => {
    const { timer, calls, events } = startMaintenance([true, true, false, true], [true]);
    await timer.advance(10_000);
    expect(calls).toEqual(['compact', 'compact', 'compact', 'vacuum', 'compact', 'compact', 'vacuum']);
    expect(events.map(({ type }) => type)).toEqual(['compacted', 'compacted', 'vacuumed', 'compacted']);
  });

  test('reports the duration of a vacuum without that of the search for parts to compact before it', async () => {
    const { timer, events } = startMaintenance([false, true], [true], { compact: 3_000, vacuum: 500 });
    await timer.advance(20_000);
    expect(events.slice(0, 2)).toEqual([
      { type: 'vacuumed', durationMs: 500 },
      { type: 'compacted', durationMs: 3_000 },
    ]);
  });

  test('runs again 10 s after a failed compaction, because the store skips only the kind that failed', async () => {
    const { timer, calls, events } = startMaintenance([new Error('full')], []);
    await timer.advance(10_000);
    expect(events).toEqual([{ type: 'compaction_failed', error: new Error('full') }]);
    expect(calls).toEqual(['compact']);
    await timer.advance(10_000);
    expect(calls).toEqual(['compact', 'compact', 'vacuum']);
  });

  test('retries 10 minutes after a failed vacuum', async () => {
    const { timer, calls, events } = startMaintenance([], [new Error('full')]);
    await timer.advance(10_000);
    expect(events).toEqual([{ type: 'vacuum_failed', error: new Error('full') }]);
    const before = calls.length;
    await timer.advance(599_999);
    expect(calls).toHaveLength(before);
    await timer.advance(1);
    expect(calls.slice(before)).toEqual(['compact', 'vacuum']);
  });

  test('runs nothing after close', async () => {
    const { timer, calls, close } = startMaintenance([true], []);
    close();
    await timer.advance(60_000);
    await flushPromises();
    expect(calls).toEqual([]);
  });
});
