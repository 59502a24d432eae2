// What the system says of a process or a folder.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Time on a core that a process used, in milliseconds (Linux counts in hundredths of a second). */
export function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export function residentMb(pid) {
  return statusMb(pid, 'VmRSS');
}

/** The most that it ever had. */
export function residentPeakMb(pid) {
  return statusMb(pid, 'VmHWM');
}

function statusMb(pid, field) {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(text)?.[1]) / 1024);
}

/** What its files occupy. */
export function folderBytes(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
