// backup.json, the last file of a backup: when and by which version it was taken, and how many records it has. A copy without it is
// not complete.
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { StoreName } from '../store/store.ts';

export const REPORT_FILE = 'backup.json';

export interface KindCounts {
  /** Records in the store's files: in its parts, or in the outbox for ClickHouse. */
  readonly stored: number;
  /** Further records, which are in the spool only. */
  readonly spooled: number;
}

export interface BackupReport {
  readonly version: string;
  /** RFC 3339, UTC. */
  readonly takenAt: string;
  readonly store: StoreName;
  /** Only kinds with records. */
  readonly records: Readonly<Partial<Record<LogKind, KindCounts>>>;
}

export function countsByKind(
  stored: ReadonlyMap<LogKind, number>,
  spooled: ReadonlyMap<LogKind, number>,
): BackupReport['records'] {
  const counts = LOG_KINDS.map(
    kind => [kind, { stored: stored.get(kind) ?? 0, spooled: spooled.get(kind) ?? 0 }] as const,
  );
  return Object.fromEntries(counts.filter(([, { stored, spooled }]) => stored + spooled > 0));
}

export function formatReport(report: BackupReport): string {
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

/** Sums over all kinds. */
export function totalCounts({ records }: Pick<BackupReport, 'records'>): KindCounts {
  const counts = Object.values(records);
  return {
    stored: counts.reduce((sum, { stored }) => sum + stored, 0),
    spooled: counts.reduce((sum, { spooled }) => sum + spooled, 0),
  };
}
