// Compares the records in a data directory with the batches that its server acknowledged.
import { expect } from 'vitest';
import { startApp } from '../../src/app.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { parseBody } from '../../src/intake/parse-body.ts';
import { testConfig } from '../support/app.ts';
import { reportFault } from '../support/fault-report.ts';
import { savedQuery } from '../support/store.ts';
import type { Ledger } from './load.ts';

export interface AuditResult {
  /** Acknowledged batches of which a record is missing or duplicated. */
  readonly wrong: string[];
  /** Unacknowledged batches that are stored in part or with duplicates. */
  readonly partial: string[];
  /** Acknowledged records that are missing. */
  readonly lost: number;
  /** Records that are stored more than once. */
  readonly duplicated: number;
  readonly records: number;
}

/** Audits the directory, reports the row of the fault table, and fails if a batch is not stored as it must be. */
export async function auditAndReport(
  { fault, runs, outcome }: { readonly fault: string; readonly runs: number; readonly outcome: string },
  dataDirectory: string,
  ledger: Ledger,
): Promise<AuditResult> {
  const result = await auditDataDirectory(dataDirectory, ledger);
  const { wrong, partial, lost, duplicated, records } = result;
  reportFault({ fault, runs, outcome, lost: lost + partial.length, duplicated });
  expect({ wrong, partial }).toEqual({ wrong: [], partial: [] });
  expect(records).toBeGreaterThanOrEqual(ledger.acknowledgedRecords);
  return result;
}

/** Opens the directory as a server start does, including the replay of the spool. */
export async function auditDataDirectory(dataDirectory: string, ledger: Ledger): Promise<AuditResult> {
  const app = await startApp(testConfig(dataDirectory), () => {}, {
    bodyParser: { parse: async body => parseBody(body), close: async () => {} },
  });
  try {
    const stored = new Map<number, { count: number; distinct: number }>();
    let records = 0;
    for (const kind of LOG_KINDS) {
      // A record that was sent as OTLP has no id of its own (load.ts).
      const id = `case when regexp_full_match(event_message, '\\d+-\\d+') then event_message else id end`;
      const sql = `select split_part(id, '-', 1)::integer, count(*), count(distinct id)
        from (select ${id} as id from ${kind}_logs) group by 1`;
      const query = savedQuery(sql, ['integer', 'integer', 'integer'], 1_000_000);
      for (const [number, count, distinct] of (await app.store.query(query, {})).rows) {
        stored.set(Number(number), { count: Number(count), distinct: Number(distinct) });
        records += Number(count);
      }
    }
    const wrong: string[] = [];
    const partial: string[] = [];
    let [lost, duplicated] = [0, 0];
    for (const { number, kind, count: sent, acknowledged } of ledger.batches) {
      const { count, distinct } = stored.get(number) ?? { count: 0, distinct: 0 };
      const isComplete = count === sent && distinct === sent;
      const description = `${kind} ${number}: ${sent} sent, ${count} stored, ${distinct} distinct`;
      if (acknowledged) lost += sent - distinct;
      duplicated += count - distinct;
      if (acknowledged && !isComplete) wrong.push(description);
      if (!acknowledged && count !== 0 && !isComplete) partial.push(description);
    }
    return { wrong, partial, lost, duplicated, records };
  } finally {
    await app.close();
  }
}
