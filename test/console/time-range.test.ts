import { describe, expect, test } from 'vitest';
import { isOpenEnded, pickRange, toSpan, zoomOut, zoomTo } from '../../console/time-range.ts';

const NOW = Date.parse('2026-11-14T12:00:00Z');
const BUCKETS = { startMicros: NOW * 1000 - 600e6, endMicros: NOW * 1000 - 300e6 };

describe('time range', () => {
  test('a range of a chart has the bounds of its buckets, and the API gets them 1 µs earlier', () => {
    const settings = zoomTo(BUCKETS);
    expect(settings).toEqual({
      range: 'custom',
      start: '2026-11-14T11:49:59.999999Z',
      end: '2026-11-14T11:54:59.999999Z',
    });
    expect(toSpan(settings)).toEqual({ startMs: NOW - 600_000, endMs: NOW - 300_000 });
    expect(isOpenEnded(settings)).toBe(false);
  });

  test('zooming out makes the range three times as long', () => {
    expect(toSpan(zoomOut(zoomTo(BUCKETS)))).toEqual({ startMs: NOW - 900_000, endMs: NOW });
  });

  test('a relative range ends at the time of the query, and all records have no start', () => {
    expect(toSpan({ range: '15min' }, NOW)).toEqual({ startMs: NOW - 900_000, endMs: NOW });
    expect(toSpan({ range: 'all' }, NOW)).toEqual({ startMs: 0, endMs: NOW });
  });

  test('an unknown range is the last hour, and only a custom range has times', () => {
    expect(pickRange({ range: 'bogus', kind: 'edge' })).toEqual({ range: '1hr', start: '', end: '' });
    expect(pickRange({ range: '7day', start: 'x' })).toEqual({ range: '7day', start: '', end: '' });
  });
});
