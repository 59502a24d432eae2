// dendro serve: starts the service and stops it on SIGTERM or SIGINT.
import { startApp } from '../app.ts';
import { type Invocation, readServeConfig } from '../config.ts';
import { logTo } from '../observe/log.ts';
import type { FirstToken } from '../token/first-token.ts';

export async function serve(invocation: Invocation): Promise<void> {
  const observe = logTo(process.stdout, process.stderr);
  const stopSignal = waitForStopSignal();
  const app = await startApp(readServeConfig(invocation), observe);
  try {
    if (app.firstToken !== undefined) await printFirstToken(app.firstToken); // before the lines that scripts wait for
    observe({ type: 'listening', listener: 'public', url: app.publicUrl });
    observe({ type: 'listening', listener: 'internal', url: app.internalUrl });
    // If the store is invalidated, this throws: the app is closed and the process exits with the error.
    observe({ type: 'stopping', signal: await Promise.race([stopSignal, app.storeInvalidated]) });
  } finally {
    await app.close();
  }
  observe({ type: 'stopped' });
}

/** Resolves to the name of the signal. After this call, SIGTERM and SIGINT no longer end the process by themselves. */
export function waitForStopSignal(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}

async function printFirstToken(token: FirstToken): Promise<void> {
  const line = process.stdout.isTTY
    ? `first token, shown once: ${token.secret}`
    : `first token: in the file ${await token.writeToFile()}`;
  process.stdout.write(`${line}\n`);
}
