// Waits for the signal that ends a running service.

/** Resolves to its name. From now on the signals no longer end the process by themselves. */
export function waitForSignal(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}
