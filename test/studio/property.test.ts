import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { micros, NOW } from '../support/app.ts';
import { isOnClickHouse } from '../support/clickhouse.ts';
import { randomQuery, recordDraft } from '../support/reference-studio.ts';
import { STUDIO_CONFIG, StudioClient } from '../support/studio-client.ts';
import { useApp } from '../support/use-app.ts';

/** The ClickHouse of the tests takes about a second for a query. */
const QUERIES = isOnClickHouse() ? 60 : 400;
const RECORDS = 60;
/** To try other records and queries, set another seed. */
const SEED = Number(process.env['DENDRO_STUDIO_SEED'] ?? 20261118);

describe('random queries of Studio', () => {
  const app = useApp(STUDIO_CONFIG);
  const studio = new StudioClient(app);
  let records: LogRecord[] = [];
  beforeAll(async () => {
    const drafts = fc.sample(recordDraft, { numRuns: RECORDS, seed: SEED });
    const start = Number(micros(NOW)) - 7_000_000_000;
    // Several records share a timestamp.
    records = drafts.map((draft, index) =>
      draft(`r${String(index).padStart(2, '0')}`, start + (index >> 1) * 100_000_000),
    );
    await app.append('edge', records);
    await app.append(
      'edge',
      records.map(each => ({ ...each, project: 'other' })),
    );
  });

  test('return what a plain reading of the records returns', async () => {
    let refused = 0;
    for (const { sql, isOrdered, rowsOf } of fc.sample(randomQuery, { numRuns: QUERIES, seed: SEED })) {
      const { status, rows, error } = await studio.send(sql);
      // A random expression can be too expensive, or use too many fields or patterns.
      if (status === 400 && /too expensive|more than \d+ (patterns|uses|nested)/.test(error.message)) {
        refused++;
        continue;
      }
      expect([sql, status, error?.message]).toEqual([sql, 200, undefined]);
      const sorted = (list: readonly unknown[]) =>
        isOrdered ? list : [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      expect({ seed: SEED, sql, rows: sorted(rows) }).toEqual({
        seed: SEED,
        sql,
        rows: sorted(rowsOf(records)),
      });
    }
    expect(refused).toBeLessThan(QUERIES / 10);
  }, 600_000);
});
