// Reports of the fault tests, from which scripts/test-faults.mjs makes the table of docs/reliability.md.
import { appendFileSync } from 'node:fs';
import { expect } from 'vitest';
import { FAULTS, type FaultReport } from '../../scripts/fault-table.mjs';

/** `npm run test:faults` runs the full size, `npm run test:full` the quick one. */
export const isFullSize = process.env['DENDRO_FAULT_SIZE'] === 'full';

export function sized<T>(quick: T, full: T): T {
  return isFullSize ? full : quick;
}

/** Reports the outcome, then fails if a record is lost or duplicated. */
export function reportFault(report: FaultReport): void {
  expect(FAULTS).toContain(report.fault);
  const file = process.env['DENDRO_FAULT_REPORTS'];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(report)}\n`);
  expect(report).toMatchObject({ lost: 0, duplicated: 0 });
}

/** Lists different values with their numbers: `503 (2 ×), 200 (7 ×)`. */
export function tally(values: Iterable<unknown>): string {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
  const entries = [...counts].map(([value, count]) => `${value} (${count} ×)`);
  return counts.size === 1 ? [...counts.keys()].join() : entries.join(', ');
}
