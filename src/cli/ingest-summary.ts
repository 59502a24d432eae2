// Counts the accepted and rejected records of one file, and describes them for the terminal.
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import type { EarlierLoad } from '../store/store.ts';
import { escapeForTerminal } from './terminal.ts';

export interface RejectedRecord extends Rejection {
  /** Position within its chunk, from 0. */
  readonly index: number;
}

/** The rejected records with the same code. */
interface RejectedGroup {
  count: number;
  /** An example for the summary. Its index is the position within the file. */
  first?: RejectedRecord;
}

export class IngestSummary {
  readonly #startedAt = performance.now();
  readonly #rejected = new Map<string, RejectedGroup>();
  #accepted = 0;
  /** Records of all chunks before the current one. */
  #recordsBefore = 0;

  /** Adds the next chunk of the file. `errors` may list only some of the rejected records. */
  add(
    accepted: number,
    rejected: number | Partial<Record<RejectCode, number>>,
    errors: readonly RejectedRecord[],
  ) {
    this.#accepted += accepted;
    const counts = typeof rejected === 'number' ? countByCode(rejected, errors) : rejected;
    let records = accepted;
    for (const [code, count] of Object.entries(counts)) {
      records += count;
      const group = this.#rejected.get(code) ?? { count: 0 };
      this.#rejected.set(code, group);
      group.count += count;
      const first = errors.find(error => error.code === code);
      if (first !== undefined) group.first ??= { ...first, index: this.#recordsBefore + first.index };
    }
    this.#recordsBefore += records;
  }

  /** Adds a chunk of one record, which is rejected. */
  reject(rejection: Rejection): void {
    this.add(0, { [rejection.code]: 1 }, [{ index: 0, ...rejection }]);
  }

  get hasRejected(): boolean {
    return this.#rejected.size > 0;
  }

  describeProgress(): string {
    const seconds = (performance.now() - this.#startedAt) / 1000;
    const unit = this.#accepted === 1 ? 'record' : 'records';
    return `${format(this.#accepted)} ${unit}, ${format(Math.round(this.#accepted / seconds))} per second`;
  }

  /** `FILE: N accepted, M rejected`, and one line for each reason. */
  describe(file: string): string {
    const groups = [...this.#rejected];
    const rejected = groups.reduce((sum, [, { count }]) => sum + count, 0);
    const lines = groups.map(([code, { count, first }]) => {
      const example =
        first === undefined ? '' : `, first at record ${format(first.index + 1)}: ${first.message}`;
      return `  ${format(count)} ${escapeForTerminal(`${code}${example}`)}\n`;
    });
    return `${escapeForTerminal(file)}: ${format(this.#accepted)} accepted, ${format(rejected)} rejected\n${lines.join('')}`;
  }
}

/** Says that the same content was loaded before. What was erased since was loaded again, except from standard input. */
export function describeEarlierLoad(file: string, { records, loadedAtMicros, erased }: EarlierLoad): string {
  const time = new Date(Number(loadedAtMicros / 1000n)).toISOString().replace(/\.\d+Z$/, 'Z');
  const hint =
    erased.length > 0
      ? ', some of which may have been erased since; load it from a file to load these again'
      : '; use --again to load it a second time';
  return `${escapeForTerminal(file)}: already loaded at ${time}, ${format(records)} ${records === 1 ? 'record' : 'records'}${hint}\n`;
}

/** Counts the rejected records of a response by code. The response has their total, but the errors of only the first ones. */
function countByCode(rejected: number, errors: readonly RejectedRecord[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code } of errors) counts[code] = (counts[code] ?? 0) + 1;
  if (rejected > errors.length) counts['not listed by the server'] = rejected - errors.length;
  return counts;
}

function format(count: number): string {
  return count.toLocaleString('en-US');
}
