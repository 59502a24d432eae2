// dendro serve: starts the service, reloads its endpoints on SIGHUP, and stops on SIGTERM or SIGINT.
import { resolve } from 'node:path';
import { type App, startApp } from '../app.ts';
import { type Invocation, readServeConfig } from '../config.ts';
import type { Observe } from '../observe/event.ts';
import { logTo } from '../observe/log.ts';
import { readVersion } from '../system/version.ts';
import type { FirstToken } from '../token/first-token.ts';
import { withConversionBar } from './conversion-bar.ts';

export async function serve(invocation: Invocation): Promise<void> {
  const config = readServeConfig(invocation);
  const format = config.log.format ?? (process.stderr.isTTY ? 'text' : 'json');
  const observe = logTo(process.stdout, process.stderr, { ...config.log, format });
  const stopSignal = waitForStopSignal();
  let reloadEndpoints = async () => {}; // until the server has started, there is nothing to reload
  process.on('SIGHUP', () => void reloadEndpoints());
  const app = await withConversionBar(observe, process.stderr, log =>
    startApp(config, exitIfStoppedDuringConversion(stopSignal, log), { showFirstToken: printFirstToken }),
  );
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
    reloadEndpoints = app.reloadEndpoints;
    // If the store is invalidated, this throws: the app is closed and the process exits with the error.
    observe({ type: 'stopping', signal: await Promise.race([stopSignal, app.storeFailed]) });
  } finally {
    await closeWithinLimit(app, observe);
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
export function closeWithinLimit(app: App, observe: Observe): Promise<void> {
  const kill = () => {
    observe({ type: 'stop_timed_out', seconds: STOP_LIMIT_SECONDS });
    process.kill(process.pid, 'SIGKILL');
  };
  setTimeout(kill, STOP_LIMIT_SECONDS * 1000).unref(); // not cleared: a thread can also delay the exit after `close`
  return app.close();
}

/** Resolves to the name of the first stop signal. A second signal of the same name ends the process at once (Node's default). */
export function waitForStopSignal(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}

/** A conversion can take minutes, so a stop signal ends it. The next start begins it again. */
function exitIfStoppedDuringConversion(stopSignal: Promise<string>, log: Observe): Observe {
  let isConverting = false;
  void stopSignal.then(signal => {
    if (!isConverting) return;
    log({ type: 'stopping', signal });
    process.exit();
  });
  return event => {
    if (event.type === 'conversion_progress') isConverting = true;
    if (event.type === 'converted') isConverting = false;
    log(event);
  };
}

async function printFirstToken(token: FirstToken): Promise<void> {
  const line = process.stdout.isTTY
    ? `first token, shown once: ${token.secret}`
    : `first token: in the file ${await token.writeToFile()}`;
  process.stdout.write(`${line}\n`);
}
