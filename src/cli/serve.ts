// dendro serve: starts the service and stops it on SIGTERM or SIGINT.
import { startApp } from '../app.ts';
import { systemClock } from '../clock.ts';
import { type Invocation, readServeConfig } from '../config.ts';
import { logTo } from '../observe/log.ts';
import { refusePositionals } from './positionals.ts';

export async function serve(invocation: Invocation): Promise<void> {
  refusePositionals(invocation);
  const observe = logTo(process.stdout, process.stderr);
  const stopped = waitForSignal();
  const app = await startApp(readServeConfig(invocation), systemClock, observe);
  if (app.firstToken !== undefined) {
    if (process.stdout.isTTY) print(`first token, shown once: ${app.firstToken.secret}`);
    else print(`first token: in the file ${app.firstToken.leave()}`);
  }
  observe({ type: 'stopping', signal: await stopped });
  await app.close();
  observe({ type: 'stopped' });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function waitForSignal(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}
