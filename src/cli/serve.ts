// dendro serve: starts the service, reloads its endpoints on SIGHUP, and stops on SIGTERM or SIGINT.
import { resolve } from 'node:path';
import { type App, startApp } from '../app.ts';
import { findUnknownVariables, type Invocation, readServeConfig } from '../config.ts';
import type { Observe } from '../observe/event.ts';
import { logTo } from '../observe/log.ts';
import { toReachable } from '../system/reachable-url.ts';
import { readVersion } from '../system/version.ts';
import type { FirstToken } from '../token/token-file.ts';
import type { Io } from './io.ts';
import { showConversion } from './terminal.ts';

export async function serve(invocation: Invocation, io: Io): Promise<void> {
  const config = readServeConfig(invocation);
  const format = config.logFormat ?? (io.stderr.isTTY ? 'text' : 'json');
  const observe = logTo(io.stdout, io.stderr, format);
  const variables = findUnknownVariables(io.env);
  if (variables.length > 0) observe({ type: 'unknown_variables', variables });
  const stopSignal = waitForStopSignal(io);
  let reloadEndpoints = async () => {}; // until the server has started, there is nothing to reload
  io.signals.on('SIGHUP', () => void reloadEndpoints());
  let hasStarted = false;
  void stopSignal.then(signal => {
    if (hasStarted) return;
    // A conversion or the replay of a large spool can take minutes. Each is safe to interrupt, as by a crash: the next start repeats it.
    observe({ type: 'stopping', signal });
    observe({ type: 'stopped' });
    io.exit(0);
  });
  const log = showConversion(io, observe);
  let firstSecret: string | undefined;
  const app = await startApp(config, log, {
    async showFirstToken(token) {
      await printFirstToken(token, io);
      firstSecret = token.secret;
    },
  });
  hasStarted = true;
  const { publicUrl, internalUrl } = app;
  try {
    observe({
      type: 'started',
      version: readVersion(),
      store: config.storeName,
      dataDirectory: resolve(config.store.dataDirectory),
      publicUrl,
      internalUrl,
    });
    observe({ type: 'listening', listener: 'public', url: publicUrl });
    observe({ type: 'listening', listener: 'internal', url: internalUrl });
    if (firstSecret !== undefined && io.stdout.isTTY)
      io.stdout.write(`open the console, signed in: ${toReachable(publicUrl)}/#token=${firstSecret}\n`);
    reloadEndpoints = app.reloadEndpoints;
    // If the store is invalidated, this throws: the app is closed and the process exits with the error.
    observe({ type: 'stopping', signal: await Promise.race([stopSignal, app.storeFailed]) });
  } finally {
    await closeWithinLimit(app, observe, io);
  }
  observe({ type: 'stopped' });
}

/** 10 s for running requests, then 5 s to finish a running flush and to close the store. */
const STOP_LIMIT_SECONDS = 15;

/**
 * Closes the app. If that takes too long, kills this process: a query that does not react to its cancellation holds a native
 * thread, and both a normal exit and process.exit() wait for that thread. No acknowledged record is lost: all are
 * in the spool or in the store.
 */
export function closeWithinLimit(app: App, observe: Observe, io: Io): Promise<void> {
  const kill = () => {
    observe({ type: 'stop_timed_out', seconds: STOP_LIMIT_SECONDS });
    io.kill();
  };
  setTimeout(kill, STOP_LIMIT_SECONDS * 1000).unref(); // not cleared: a thread can also delay the exit after `close`
  return app.close();
}

/** Resolves to the name of the first stop signal. A second signal of the same name ends the process at once (Node's default). */
export function waitForStopSignal({ signals }: Io): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) signals.once(signal, () => resolve(signal));
  });
}

async function printFirstToken(token: FirstToken, { stdout }: Io): Promise<void> {
  const line = stdout.isTTY
    ? `first token, shown once: ${token.secret}`
    : `first token: in the file ${await token.writeToFile()}`;
  stdout.write(`${line}\n`);
}
