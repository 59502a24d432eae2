import { describe, expect, test } from 'vitest';
import { FairQueue } from '../../src/intake/fair-queue.ts';

/** Takes all jobs. A job `a1` is from the sender `a` and takes the time that `costs` has for that sender. */
function takeAll(queue: FairQueue<string>, costs: Readonly<Record<string, number>>): string[] {
  const taken: string[] = [];
  for (let job = queue.take(); job !== undefined; job = queue.take()) {
    taken.push(job);
    queue.addTime(job.charAt(0), costs[job.charAt(0)] ?? 0);
  }
  return taken;
}

describe('FairQueue', () => {
  test('jobs of equal length are taken in turn from each sender', () => {
    const queue = new FairQueue<string>();
    for (const job of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(job.charAt(0), job);
    expect(takeAll(queue, { a: 1, b: 1, c: 1 })).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  test('a sender with slow jobs gets as much time as a sender with fast jobs', () => {
    const queue = new FairQueue<string>();
    for (const job of ['a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'b4', 'b5']) queue.add(job.charAt(0), job);
    expect(takeAll(queue, { a: 3, b: 1 })).toEqual(['a1', 'b1', 'b2', 'b3', 'a2', 'b4', 'b5', 'a3']);
  });

  test('a sender that was idle is not preferred for the time that it did not use', () => {
    const queue = new FairQueue<string>();
    for (const job of ['a1', 'a2', 'a3', 'a4']) queue.add('a', job);
    for (const expected of ['a1', 'a2']) {
      expect(queue.take()).toBe(expected);
      queue.addTime('a', 10);
    }
    for (const job of ['b1', 'b2', 'b3']) queue.add('b', job);
    expect(takeAll(queue, { a: 10, b: 10 })).toEqual(['b1', 'a3', 'b2', 'a4', 'b3']);
  });

  test('a removed job is not taken', () => {
    const queue = new FairQueue<string>();
    for (const job of ['a1', 'a2']) queue.add('a', job);
    expect([queue.remove('a', 'a1'), queue.remove('a', 'a1')]).toEqual([true, false]);
    expect(takeAll(queue, {})).toEqual(['a2']);
  });
});
