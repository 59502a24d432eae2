import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { logTo } from '../../src/observe/log.ts';

/** Notes an event every second, and answers the seconds in which it was told, with the lines. */
const tell = (events: (second: number) => Event | undefined, seconds: number) => {
  let now = 5_000_000;
  const errors = new PassThrough();
  const observe = logTo(new PassThrough(), errors, { now: () => now });
  const told: [number, string][] = [];
  for (let second = 0; second < seconds; second++, now += 1_000) {
    const event = events(second);
    if (event !== undefined) observe(event);
    const line: Buffer | null = errors.read();
    if (line !== null) told.push([second, line.toString()]);
  }
  return told;
};
const failed: Event = { type: 'apply_failed', error: new Error('the store is gone') };

describe('what fails every second', () => {
  test('is told at once, then at growing distances, and at last once a minute', () => {
    const told = tell(() => failed, 300);
    expect(told.map(([second]) => second)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    expect(told[0]?.[1]).toMatch(/^records wait in the spool.*: the store is gone\n$/);
    expect(told[3]?.[1]).toMatch(/: the store is gone \(3 more since this was last told\)\n$/);
  });

  test('is told at once again after it worked, and that it works is told', () => {
    const told = tell(
      second =>
        second === 10 ? { type: 'apply_recovered', failures: 10 } : second < 13 ? failed : undefined,
      20,
    );
    expect(told.map(([second]) => second)).toEqual([0, 1, 3, 7, 10, 11, 12]);
    expect(told[4]?.[1]).toBe('the store takes records again, after 10 attempts that failed\n');
    expect(told[5]?.[1]).not.toContain('more since');
  });

  test('is told at once again after minutes without it', () => {
    const told = tell(second => (second < 6 || second === 400 ? failed : undefined), 500);
    expect(told.map(([second]) => second)).toEqual([0, 1, 3, 400]);
  });

  test('keeps nothing else from being told', () => {
    const other: Event = { type: 'spool_write_failed', error: new Error('the disk is full') };
    const told = tell(second => (second === 5 ? other : failed), 7);
    expect(told.map(([second]) => second)).toEqual([0, 1, 3, 5]);
  });
});
