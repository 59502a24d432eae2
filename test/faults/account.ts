// Holds what a data directory keeps against what its server acknowledged.
import { startApp } from '../../src/app.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { parseBody } from '../../src/intake/parse-body.ts';
import { testConfig } from '../support/app.ts';
import { savedQuery } from '../support/store.ts';
import type { Ledger } from './load.ts';

export interface Account {
  /** Batches of which not all is there exactly once, and which were acknowledged. */
  readonly wrong: string[];
  /** Batches nobody acknowledged of which a part is there, or something twice. */
  readonly partly: string[];
  /** How many records of the kind edge lie in the file, rather than in the spool alone. */
  readonly sealed: number;
  readonly records: number;
}

/** Opens the directory as a start does, spool and all. */
export async function takeAccount(dataDirectory: string, ledger: Ledger): Promise<Account> {
  const app = await startApp(testConfig(dataDirectory), () => {}, undefined, undefined, {
    parse: async body => parseBody(body),
    close: async () => {},
  });
  try {
    const found = new Map<number, { count: number; differing: number }>();
    let records = 0;
    for (const kind of LOG_KINDS) {
      const sql = `select split_part(id, '-', 1)::integer, count(*), count(distinct id) from ${kind}_logs group by 1`;
      const query = savedQuery(sql, ['integer', 'integer', 'integer'], 1_000_000);
      for (const [number, count, differing] of (await app.store.query(query, {})).rows) {
        found.set(Number(number), { count: Number(count), differing: Number(differing) });
        records += Number(count);
      }
    }
    const wrong: string[] = [];
    const partly: string[] = [];
    for (const { number, kind, count: sent, acknowledged } of ledger.batches) {
      const { count, differing } = found.get(number) ?? { count: 0, differing: 0 };
      const isWhole = count === sent && differing === sent;
      const told = `${kind} ${number}: ${sent} sent, ${count} there, ${differing} differing`;
      if (acknowledged && !isWhole) wrong.push(told);
      if (!acknowledged && count !== 0 && !isWhole) partly.push(told);
    }
    return { wrong, partly, records, sealed: app.store.flushedUpTo('edge') };
  } finally {
    await app.close();
  }
}
