// Time that passes: what cache and warmer wait by. Tests make hours pass in milliseconds.

export interface Timer {
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** Calls back once, unless the returned function is called before. */
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
