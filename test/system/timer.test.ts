import { beforeEach, describe, expect, test } from 'vitest';
import { every } from '../../src/system/timer.ts';
import { flushPromises, ManualTimer } from '../support/manual-timer.ts';

describe('every', () => {
  let timer: ManualTimer;
  let runs: number;
  beforeEach(() => {
    timer = new ManualTimer();
    runs = 0;
  });
  const count = () => {
    runs++;
  };

  test('runs the work for the first time after one interval, then once each interval', async () => {
    every(timer, 100, count);
    await timer.advance(99);
    expect(runs).toBe(0);
    await timer.advance(1);
    expect(runs).toBe(1);
    await timer.advance(300);
    expect(runs).toBe(4);
  });

  test('waits for the work to finish before the next interval begins', async () => {
    let finish = () => {};
    every(timer, 100, () => {
      runs++;
      return new Promise(resolve => {
        finish = resolve;
      });
    });
    await timer.advance(1_000);
    expect(runs).toBe(1);
    finish();
    await timer.advance(99);
    expect(runs).toBe(1);
    await timer.advance(1);
    expect(runs).toBe(2);
  });

  test('does not run the work after stop, which may be called twice', async () => {
    const job = every(timer, 100, count);
    await timer.advance(100);
    await job.stop();
    await job.stop();
    await timer.advance(1_000);
    expect(runs).toBe(1);
  });

  test('stop resolves when the running work has finished, and no further round starts', async () => {
    let finish = () => {};
    let isStopped = false;
    const job = every(timer, 100, () => {
      runs++;
      return new Promise(resolve => {
        finish = resolve;
      });
    });
    await timer.advance(100);
    const stopping = job.stop().then(() => {
      isStopped = true;
    });
    await flushPromises();
    expect(isStopped).toBe(false);
    finish();
    await stopping;
    await timer.advance(1_000);
    expect(runs).toBe(1);
  });
});
