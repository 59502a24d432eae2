export interface FaultReport {
  readonly fault: string;
  readonly runs: number;
  /** What the user sees. */
  readonly outcome: string;
  /** Acknowledged records that are missing. */
  readonly lost: number;
  /** Records that are stored more than once. */
  readonly duplicated: number;
}
export const FAULTS: readonly string[];
export function readReports(file: string): FaultReport[];
export function toRows(reports: readonly FaultReport[]): FaultReport[];
export function formatTable(rows: readonly FaultReport[]): string;
export function replaceTable(page: string, text: string): string;
