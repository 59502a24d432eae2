// dendro serve: starts the service and stops it on SIGTERM or SIGINT.
import { startApp } from '../app.ts';
import { type Invocation, readServeConfig } from '../config.ts';
import { logTo } from '../observe/log.ts';
import type { FirstToken } from '../token/first-token.ts';
import { refusePositionals } from './positionals.ts';
import { waitForSignal } from './stop-signal.ts';

export async function serve(invocation: Invocation): Promise<void> {
  refusePositionals(invocation);
  const observe = logTo(process.stdout, process.stderr);
  const stopped = waitForSignal();
  const app = await startApp(readServeConfig(invocation), observe);
  if (app.firstToken !== undefined) announce(app.firstToken); // before the lines that scripts wait for
  observe({ type: 'listening', listener: 'public', url: app.publicUrl });
  observe({ type: 'listening', listener: 'internal', url: app.internalUrl });
  try {
    observe({ type: 'stopping', signal: await Promise.race([stopped, app.storeLost]) });
  } finally {
    await app.close();
  }
  observe({ type: 'stopped' });
}

function announce(token: FirstToken): void {
  const line = process.stdout.isTTY
    ? `first token, shown once: ${token.secret}`
    : `first token: in the file ${token.writeToFile()}`;
  process.stdout.write(`${line}\n`);
}
