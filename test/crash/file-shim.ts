// Compiles file-shim.c, which the dynamic linker loads into the program before its other libraries. It records and breaks the file
// operations of the program, those of DuckDB included.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { type LoggedOperation, readOperationLog } from './operation-log.ts';

export const FAULTS = ['ENOSPC', 'EIO', 'EDQUOT', 'SHORT'] as const;
/** The error with which an operation fails. SHORT: a write writes half of its bytes. */
export type Fault = (typeof FAULTS)[number];

export interface FileShim {
  /** Environment variables of the program. */
  readonly env: Readonly<Record<string, string>>;
  /** The variables with which the operation of this number fails, counted from 1 in each process. */
  failAt(operation: number, fault: Fault): Readonly<Record<string, string>>;
  /** All operations of all processes so far, in order. */
  operations(): LoggedOperation[];
  /** Forgets the operations so far. */
  clear(): void;
  remove(): void;
}

/** Records the operations below `root`. Returns undefined if there is no C compiler and none can be installed. */
export function createFileShim(root: string): FileShim | undefined {
  if (process.platform !== 'linux' || ensurePrograms({ gcc: ['gcc', 'libc6-dev'] }).length > 0)
    return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'dendro-file-shim-'));
  const library = join(directory, 'shim.so');
  const log = join(directory, 'operations');
  const source = join(import.meta.dirname, 'file-shim.c');
  const { status, stderr } = spawnSync('gcc', ['-O1', '-shared', '-fPIC', '-o', library, source], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`cannot compile ${source}: ${stderr}`);
  const env: Record<string, string> = { LD_PRELOAD: library, SHIM_ROOT: root, SHIM_LOG: log };
  return {
    env,
    failAt: (operation, fault) => ({ ...env, SHIM_FAIL_AT: String(operation), SHIM_FAIL_ERROR: fault }),
    operations: () => (existsSync(log) ? [...readOperationLog(readFileSync(log))] : []),
    clear: () => existsSync(log) && truncateSync(log),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
