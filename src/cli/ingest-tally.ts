// What became of the records of one file.
import type { RejectCode, Rejection } from '../logs/rejection.ts';

interface RejectedKind {
  count: number;
  /** The first of its kind, as an example. */
  readonly index: number;
  readonly message: string;
}

export class IngestTally {
  readonly #started = performance.now();
  readonly #rejected = new Map<RejectCode, RejectedKind>();
  #accepted = 0;

  accept(count: number): void {
    this.#accepted += count;
  }

  reject(index: number, { code, message }: Rejection): void {
    const kind = this.#rejected.get(code);
    if (kind === undefined) this.#rejected.set(code, { count: 1, index, message });
    else kind.count++;
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
    const lines = kinds.map(
      ([code, { count, index, message }]) =>
        `  ${format(count)} ${code}, first at record ${format(index + 1)}: ${message}\n`,
    );
    return `${file}: ${format(this.#accepted)} accepted, ${format(rejected)} rejected\n${lines.join('')}`;
  }
}

function format(count: number): string {
  return count.toLocaleString('en-US');
}
