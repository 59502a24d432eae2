import { describe, expect, test } from 'vitest';
import { findTailStart, mergeNewer } from '../../console/logs/live-tail.ts';

const MINUTE = 60_000_000;
const NOW = 1_800_000_000_000_000;
const createRow = (id: string, timestamp: number) => ({ id, timestamp });
const createResult = (rows: readonly { id: string; timestamp: number }[], nextCursor?: string) => ({
  rows,
  nextCursor,
  ranAt: NOW / 1000,
  ranAtLocal: NOW / 1000,
  dataThrough: undefined,
  clipped: [],
});

describe('start of the request for new records', () => {
  test('it is one minute before the newest record', () => {
    expect(findTailStart([createRow('a', NOW - 5 * MINUTE)], NOW / 1000)).toBe(NOW - 6 * MINUTE);
  });

  test('it is one minute before the last request if there is no record, or one from the future', () => {
    expect(findTailStart([], NOW / 1000)).toBe(NOW - MINUTE);
    expect(findTailStart([createRow('a', NOW + 30 * MINUTE)], NOW / 1000)).toBe(NOW - MINUTE);
  });
});

describe('merge of new records', () => {
  const future = createRow('future', NOW + 30 * MINUTE);
  const shown = { rows: [future, createRow('a', NOW - MINUTE)], nextCursor: 'older' };

  test('new records come before those that are shown, and each record occurs once', () => {
    const result = createResult([future, createRow('b', NOW), createRow('a', NOW - MINUTE)], 'more');
    expect(mergeNewer(shown, result)?.rows.map(({ id }) => id)).toEqual(['future', 'b', 'a']);
  });

  test('records can be missing if the oldest new one is not shown, even if one from the future is', () => {
    expect(mergeNewer(shown, createResult([future, createRow('b', NOW)], 'more'))).toBeUndefined();
  });
});
