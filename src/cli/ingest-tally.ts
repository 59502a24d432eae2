// What became of the records of one file.
import type { RejectCode, Rejection } from '../logs/rejection.ts';

export interface RejectedRecord extends Rejection {
  /** Within its piece. */
  readonly index: number;
}

interface RejectedKind {
  count: number;
  /** The first of its kind, as an example. */
  first?: RejectedRecord;
}

export class IngestSummary {
  readonly #started = performance.now();
  readonly #rejected = new Map<string, RejectedKind>();
  #accepted = 0;
  /** Records of the pieces before. */
  #passed = 0;

  /** One piece of the file. Not every rejected record has to be among the errors. */
  note(
    accepted: number,
    rejected: number | Partial<Record<RejectCode, number>>,
    errors: readonly RejectedRecord[],
  ) {
    this.#accepted += accepted;
    const counts = typeof rejected === 'number' ? countByCode(rejected, errors) : rejected;
    let all = accepted;
    for (const [code, count] of Object.entries(counts)) {
      all += count;
      const kind = this.#rejected.get(code) ?? { count: 0 };
      this.#rejected.set(code, kind);
      kind.count += count;
      const first = errors.find(error => error.code === code);
      if (kind.first === undefined && first !== undefined)
        kind.first = { ...first, index: this.#passed + first.index };
    }
    this.#passed += all;
  }

  reject(rejection: Rejection): void {
    this.note(0, { [rejection.code]: 1 }, [{ index: 0, ...rejection }]);
  }

  /** There were records, and none was good. */
  get acceptedNone(): boolean {
    return this.#accepted === 0 && this.#rejected.size > 0;
  }

  progressNote(): string {
    const seconds = (performance.now() - this.#started) / 1000;
    return `${format(this.#accepted)} records, ${format(Math.round(this.#accepted / seconds))} a second`;
  }

  /** `FILE: N accepted, M rejected`, and a line for each reason. */
  describe(file: string): string {
    const kinds = [...this.#rejected];
    const rejected = kinds.reduce((sum, [, { count }]) => sum + count, 0);
    const lines = kinds.map(([code, { count, first }]) => {
      const example =
        first === undefined ? '' : `, first at record ${format(first.index + 1)}: ${first.message}`;
      return `  ${format(count)} ${code}${example}\n`;
    });
    return `${file}: ${format(this.#accepted)} accepted, ${format(rejected)} rejected\n${lines.join('')}`;
  }
}

/** A server tells how many it rejected, and the reasons of the first. */
function countByCode(rejected: number, errors: readonly RejectedRecord[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code } of errors) counts[code] = (counts[code] ?? 0) + 1;
  if (rejected > errors.length) counts['for other reasons'] = rejected - errors.length;
  return counts;
}

function format(count: number): string {
  return count.toLocaleString('en-US');
}
