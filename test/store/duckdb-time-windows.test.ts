import { describe, expect, test } from 'vitest';
import { windowOf } from '../../src/store/duckdb/time-windows.ts';
import { micros } from '../support/app.ts';

const DAY = 86_400_000_000n;
const RECENT = (7n * DAY) / 2n;
const OLD = 112n * DAY;
/** In the middle of a recent window. */
const NOW = 1_000n * OLD + 10n * DAY;
/** Records from here on are recent: the start of the window that contains the time seven days ago. */
const RECENT_SINCE = 1_000n * OLD;

describe('the window of a timestamp', () => {
  test('is half a week for recent records, and 112 days for old ones', () => {
    expect(windowOf(NOW, NOW)).toEqual({
      start: RECENT_SINCE + 2n * RECENT,
      end: RECENT_SINCE + 3n * RECENT,
    });
    expect(windowOf(RECENT_SINCE, NOW)).toEqual({ start: RECENT_SINCE, end: RECENT_SINCE + RECENT });
    expect(windowOf(RECENT_SINCE - 1n, NOW)).toEqual({ start: RECENT_SINCE - OLD, end: RECENT_SINCE });
    expect(windowOf(RECENT_SINCE - OLD - 1n, NOW).end).toBe(RECENT_SINCE - OLD);
  });

  test('contains its start and not its end', () => {
    const { start, end } = windowOf(NOW, NOW);
    expect(windowOf(start, NOW)).toEqual({ start, end });
    expect(windowOf(end, NOW).start).toBe(end);
    expect(windowOf(start - 1n, NOW).end).toBe(start);
  });

  test('of an old record ends where recent windows begin', () => {
    const later = NOW + 5n * RECENT; // recent records begin within an old window
    const recentSince = RECENT_SINCE + 5n * RECENT;
    expect(windowOf(RECENT_SINCE, later)).toEqual({ start: RECENT_SINCE, end: recentSince });
    expect(windowOf(recentSince - 1n, later)).toEqual({ start: RECENT_SINCE, end: recentSince });
    expect(windowOf(recentSince, later)).toEqual({ start: recentSince, end: recentSince + RECENT });
  });

  test('is a recent one for a time in the future', () => {
    const { start, end } = windowOf(NOW + 1_000n * DAY, NOW);
    expect(end - start).toBe(RECENT);
  });

  test.each([-1n, -DAY, -OLD, -OLD - 1n, micros('1900-01-01T00:00:00Z')])(
    'contains a timestamp before 1970: %s',
    timestamp => {
      const { start, end } = windowOf(timestamp, NOW);
      expect([start <= timestamp, timestamp < end, end - start]).toEqual([true, true, OLD]);
      expect(start % OLD).toBe(0n);
    },
  );

  test('of a record that becomes old contains whole recent windows', () => {
    for (let age = 0n; age < 60n; age++) {
      const timestamp = NOW - age * DAY;
      const recent = windowOf(timestamp, timestamp);
      for (const passed of [0n, 3n, 8n, 20n, 90n]) {
        const later = windowOf(timestamp, NOW + passed * DAY);
        expect(later.start <= recent.start && recent.end <= later.end).toBe(true);
      }
    }
  });
});
