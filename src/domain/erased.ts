// What was erased, so that exactly these records can be stored again. A file must not keep the name of an erased project, so it keeps
// a hash of the name. The names of the fields are part of on-disk formats.
import { hash } from 'node:crypto';
import { type LogLines, readLogLine } from './log-line.ts';

export interface ErasedRecords {
  /** SHA-256 of the name. */
  readonly projectHash: string;
  /** Only records with an earlier timestamp, in Unix microseconds. Undefined: all. */
  readonly beforeMicros?: number | undefined;
}

export function toErasedRecords({
  project,
  beforeMicros,
}: {
  readonly project: string;
  readonly beforeMicros?: bigint | undefined;
}): ErasedRecords {
  const projectHash = hash('sha256', project);
  return beforeMicros === undefined ? { projectHash } : { projectHash, beforeMicros: Number(beforeMicros) };
}

/**
 * The lines of erased records. A record that was sent without a timestamp has the time of its arrival: `nowMicros` in these lines, and
 * about `firstMicros` when it was stored before.
 */
export function selectErased(
  lines: Uint8Array,
  erased: readonly ErasedRecords[],
  { nowMicros, firstMicros }: { readonly nowMicros: number; readonly firstMicros: number },
): Pick<LogLines, 'count' | 'lines'> {
  const all =
    erased.length === 0
      ? []
      : Buffer.from(lines)
          .toString('utf8')
          .split(/(?<=\n)/);
  const hashes = new Map<unknown, string>();
  const selected = all.filter(line => {
    const { project, timestamp } = readLogLine(line) ?? {};
    const projectHash = hashes.get(project) ?? hash('sha256', String(project));
    hashes.set(project, projectHash);
    const storedMicros = Number(timestamp) === nowMicros ? firstMicros : Number(timestamp);
    return erased.some(
      ({ projectHash: other, beforeMicros = Number.POSITIVE_INFINITY }) =>
        other === projectHash && storedMicros < beforeMicros,
    );
  });
  return { count: selected.length, lines: Buffer.from(selected.join('')) };
}
