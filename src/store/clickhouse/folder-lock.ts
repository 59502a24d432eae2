// Holds a data directory for one process: a file with its number, which a process that died does not hold for ever.
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../errors.ts';
import { makeFolder } from '../../folder.ts';

/** Held by this process. In a container the process before often had the same number. */
const held = new Set<string>();

export function lockFolder(dataFolder: string): { release(): void } {
  const file = join(resolve(dataFolder), 'dendro.pid');
  try {
    makeFolder(resolve(dataFolder));
  } catch (error) {
    throw new OperatorError(`cannot use the data directory ${dataFolder}: ${(error as Error).message}`);
  }
  for (let attempts = 0; !tryLock(file); attempts++) {
    const owner = Number.parseInt(readText(file), 10);
    if (attempts === 3 || held.has(file) || (owner !== process.pid && isAlive(owner)))
      throw new OperatorError(
        `the data directory ${dataFolder} is in use by another process (PID ${owner}); stop it, or talk to the running server with --url`,
      );
    rmSync(file, { force: true });
  }
  held.add(file);
  return {
    release() {
      if (held.delete(file)) rmSync(file, { force: true });
    },
  };
}

function tryLock(file: string): boolean {
  try {
    const descriptor = openSync(file, 'wx', 0o600);
    writeSync(descriptor, `${process.pid}\n`);
    closeSync(descriptor);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw new OperatorError(`cannot use the data directory: ${(error as Error).message}`);
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // it went in between
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
