// Monotonic time and timeouts. Code with long waits or intervals gets a Timer, so that tests can make hours pass in milliseconds.
// Wall-clock time is in clock.ts.

export interface Timer {
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** Calls back once after `ms`. The returned function cancels the call. */
  after(ms: number, callback: () => void): () => void;
}

/** Does not keep the process alive by itself. */
export const systemTimer: Timer = {
  now: () => performance.now(),
  after(ms, callback) {
    const timeout = setTimeout(callback, ms);
    timeout.unref();
    return () => clearTimeout(timeout);
  },
};

export interface RepeatingJob {
  /**
   * Cancels the next round and resolves when the current round has finished. Stopping twice is safe. `work` may stop its own job,
   * but must not await it: the promise would wait for itself.
   */
  stop(): Promise<void>;
}

/**
 * Waits `ms`, then runs `work`, and repeats both until the job is stopped. So rounds never overlap. `work` handles its own
 * errors; an error that escapes it ends the process, like any unhandled rejection.
 */
export function every(timer: Timer, ms: number, work: () => void | Promise<void>): RepeatingJob {
  let isStopped = false;
  let cancel = () => {};
  let round: Promise<void> = Promise.resolve();

  const runRound = async () => {
    await work();
    scheduleRound();
  };
  const scheduleRound = () => {
    if (isStopped) return;
    cancel = timer.after(ms, () => {
      round = runRound();
    });
  };
  scheduleRound();

  return {
    async stop() {
      isStopped = true;
      cancel();
      await round;
    },
  };
}
