// Identifies a process beyond its PID, to find out whether the owner of a lock still runs or another process has its PID now.
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Boot id and start time: they differ from those of an earlier or later process with the same PID. Empty if unknown. */
  readonly start: string;
}

/**
 * Whether the process with this identity still runs. Compares the start times. If one of them is unknown, only checks whether a
 * process with this PID runs. In that case, returns false for the PID of this process itself: a caller knows its own locks, so
 * the identity is that of an earlier process with the same PID.
 */
export function isRunning({ pid, start }: ProcessIdentity): boolean {
  const currentStart = readStart(pid);
  if (start !== '' && currentStart !== '') return start === currentStart;
  return pid !== process.pid && isAlive(pid);
}

/**
 * The boot id and the process's start time within that boot. For a zombie, `ended` in place of the start time. Empty if the
 * system has no /proc or no such process.
 */
export function readStart(pid: number): string {
  const bootId = readText('/proc/sys/kernel/random/boot_id').trim();
  const stat = readText(`/proc/${pid}/stat`);
  if (bootId === '' || stat === '') return '';
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the process name before it may contain any character
  const isZombie = fields[0] === 'Z'; // it has exited, but its parent has not read the exit code
  const startTime = fields[19]; // field 22 of /proc/PID/stat; `fields` begins with field 3
  return isZombie ? `${bootId} ended` : `${bootId} ${startTime}`;
}

/** Returns the id of this process's PID namespace, or '' if there is none. In another container, a PID means another process. */
export function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** Empty if the file cannot be read. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // it exists, but belongs to another user
  }
}
