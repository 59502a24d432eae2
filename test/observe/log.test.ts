import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { logTo } from '../../src/observe/log.ts';

/** Observes one event each second. Returns the seconds in which a line was logged, with the lines. */
const logEachSecond = (eventAt: (second: number) => Event | undefined, seconds: number) => {
  let now = 5_000_000;
  const errors = new PassThrough();
  const observe = logTo(new PassThrough(), errors, { now: () => now });
  const logged: [number, string][] = [];
  for (let second = 0; second < seconds; second++, now += 1_000) {
    const event = eventAt(second);
    if (event !== undefined) observe(event);
    const line: Buffer | null = errors.read();
    if (line !== null) logged.push([second, line.toString()]);
  }
  return logged;
};
const failed: Event = { type: 'apply_failed', kind: 'edge', error: new Error('the store is gone') };

describe('the log of a failure that repeats every second', () => {
  test('has a line immediately, then after growing pauses, and at last once a minute', () => {
    const logged = logEachSecond(() => failed, 300);
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    expect(logged[0]?.[1]).toMatch(
      /^applying records of kind edge to the store failed.*: the store is gone\n$/,
    );
    expect(logged[3]?.[1]).toMatch(/: the store is gone \(3 similar messages suppressed\)\n$/);
  });

  test('reports the recovery, and logs the next failure immediately', () => {
    const logged = logEachSecond(
      second =>
        second === 10
          ? { type: 'apply_recovered', kind: 'edge', failures: 10 }
          : second < 13
            ? failed
            : undefined,
      20,
    );
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 7, 10, 11, 12]);
    expect(logged[4]?.[1]).toBe('applying records of kind edge works again after 10 failed attempts\n');
    expect(logged[5]?.[1]).not.toContain('suppressed');
  });

  test('logs a failure immediately after minutes without one', () => {
    const logged = logEachSecond(second => (second < 6 || second === 400 ? failed : undefined), 500);
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 400]);
  });

  test('does not suppress other events', () => {
    const other: Event = { type: 'spool_write_failed', error: new Error('the disk is full') };
    const otherKind: Event = { ...failed, kind: 'auth' };
    const logged = logEachSecond(second => (second === 5 ? other : second === 6 ? otherKind : failed), 8);
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 5, 6, 7]);
  });
});

test('a failure that is a defect of the program is logged with its stack', () => {
  const defect: Event = { type: 'apply_failed', kind: 'edge', error: new TypeError('x is not a function') };
  const [[, line] = [0, '']] = logEachSecond(() => defect, 1);
  expect(line).toMatch(/^applying records.*failed.*: TypeError: x is not a function\n +at .*log\.test\.ts/);
});
