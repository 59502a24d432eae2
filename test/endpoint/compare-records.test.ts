import { expect, test } from 'vitest';
import { LOG_FIELDS } from '../../src/domain/log-fields.ts';
import { compareRecords } from '../../src/endpoint/compare-records.ts';
import type { Cell } from '../../src/store/store.ts';

test('records with many ids use up little memory: of more than 50,000 values, only the first ones are compared', async () => {
  const toRow = (i: number): Cell[] => {
    const ids = Array.from({ length: 60 }, (_, key) => [`id${key}`, `${i}-${key}`]);
    const metadata =
      i % 2 === 1
        ? { region: 'us', ...Object.fromEntries(ids) }
        : { region: 'eu', late: i >= 1700 ? 1 : null };
    return [i % 2, 900, 'edge', ...LOG_FIELDS.map(() => null), JSON.stringify(metadata)];
  };
  const rows = Array.from({ length: 1800 }, (_, i) => toRow(i));
  const sample = { rows, truncated: false, exceedsMaxBytes: false, queuedMs: 0, executedMs: 0 };
  const compared = await compareRecords(sample, undefined, 100);
  expect(compared.rows.map(([field, value, , , difference]) => [field, value, difference])).toEqual([
    ['metadata.region', 'eu', -1],
    ['metadata.region', 'us', 1],
  ]);
});
