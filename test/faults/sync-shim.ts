// Breaks the fsync calls of the program: a small library in C that the dynamic linker loads before the others.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePrograms } from '../../scripts/debian.mjs';

export interface SyncShim {
  /** Environment variables of the program. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on, fsync fails for files and directories whose path contains `failingPath`. A `$` is the end of a path. */
  fail(): void;
  repair(): void;
  remove(): void;
}

/** Returns undefined if there is no C compiler and none can be installed. */
export function createSyncShim(failingPath: string): SyncShim | undefined {
  if (process.platform !== 'linux' || ensurePrograms({ gcc: ['gcc', 'libc6-dev'] }).length > 0)
    return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'dendro-sync-shim-'));
  const [library, trigger] = [join(directory, 'shim.so'), join(directory, 'trigger')];
  const source = join(import.meta.dirname, 'sync-shim.c');
  const { status, stderr } = spawnSync('gcc', ['-shared', '-fPIC', '-o', library, source, '-ldl'], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`cannot compile ${source}: ${stderr}`);
  return {
    env: { LD_PRELOAD: library, SYNC_FAIL_TRIGGER: trigger, SYNC_FAIL_PATH: failingPath },
    fail: () => writeFileSync(trigger, ''),
    repair: () => rmSync(trigger, { force: true }),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
