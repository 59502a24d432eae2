// How many files and connections this process may have open.
import { readFileSync } from 'node:fs';

/** Node raises the soft limit to the hard limit when it starts. Infinity if the limit is unknown, such as on macOS. */
export function readDescriptorLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
