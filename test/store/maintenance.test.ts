import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { Maintenance } from '../../src/store/maintenance.ts';
import type { MaintenanceTask, Store } from '../../src/store/store.ts';
import { flushPromises, ManualTimer } from '../support/manual-timer.ts';

/** `outcomes`: what each compaction does: merge this many records, or throw an error. `removals`: the same for expired records. */
function startMaintenance(outcomes: (number | Error)[], tookMs = 0, removals: (number | Error)[] = []) {
  const timer = new ManualTimer();
  const events: Event[] = [];
  const counts = { compactions: 0 };
  const maintain = async (task: MaintenanceTask) => {
    if (task === 'compact') counts.compactions++;
    if (tookMs > 0) await new Promise<void>(resolve => timer.after(tookMs, resolve));
    const outcome = (task === 'compact' ? outcomes : removals).shift() ?? 0;
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const store = { maintain, readStatistics: () => ({ embedded: undefined }) } as unknown as Store;
  const clock = () => BigInt(timer.now() * 1000);
  const options = { dataDirectory: '', retentionDays: 1 };
  const maintenance = new Maintenance(store, options, clock, timer, event => events.push(event));
  maintenance.start();
  return { timer, counts, events, close: () => maintenance.close() };
}

describe('maintenance of the store', () => {
  test('compacts every 10 s', async () => {
    const { timer, counts, events } = startMaintenance([]);
    await timer.advance(9_999);
    expect(counts.compactions).toBe(0);
    await timer.advance(1);
    expect(counts.compactions).toBe(1);
    await timer.advance(10_000);
    expect(counts.compactions).toBe(2);
    expect(events).toEqual([]);
  });

  test('compacts again at once as long as there is work, and reports each compaction with its duration', async () => {
    const { timer, counts, events } = startMaintenance([5, 5], 300);
    await timer.advance(11_000);
    expect(counts.compactions).toBe(3);
    const compacted = { type: 'compacted', durationMs: 300 };
    expect(events).toEqual([compacted, compacted]);
  });

  test('runs again 10 s after a failed compaction, because the store skips only the kind that failed', async () => {
    const { timer, counts, events } = startMaintenance([new Error('full')]);
    await timer.advance(10_000);
    expect(events).toEqual([{ type: 'compaction_failed', error: new Error('full') }]);
    expect(counts.compactions).toBe(1);
    await timer.advance(10_000);
    expect(counts.compactions).toBe(2);
  });

  test('deletes expired records every hour, and a minute after it failed', async () => {
    const { timer, events } = startMaintenance([], 0, [new Error('full'), 5, 7]);
    await timer.advance(3_600_000);
    const failed = { type: 'retention_failed', error: new Error('full') };
    expect(events).toEqual([failed]);
    await timer.advance(60_000);
    expect(events).toEqual([failed, { type: 'records_expired', count: 5 }]);
    await timer.advance(3_590_000);
    expect(events).toHaveLength(2);
    await timer.advance(10_000);
    expect(events[2]).toEqual({ type: 'records_expired', count: 7 });
  });

  test('runs nothing after close', async () => {
    const { timer, counts, close } = startMaintenance([5]);
    close();
    await timer.advance(60_000);
    await flushPromises();
    expect(counts.compactions).toBe(0);
  });
});
