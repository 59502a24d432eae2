import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fieldsOf } from '../../src/domain/log-fields.ts';
import { micros, NOW } from '../support/app.ts';
import { isOnClickHouse } from '../support/clickhouse.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { useTestApp } from '../support/hooks.ts';
import {
  expressionOf,
  formatExpression,
  matchesExpression,
  readField,
  recordDraft,
  SEARCHED_KINDS,
} from '../support/reference-search.ts';

/** The ClickHouse of the tests takes about a second for a search. */
const [SETS, EXPRESSIONS] = isOnClickHouse() ? [1, 12] : [2, 40];
const RECORDS = 90; // all fit into one page

/** Sums the counts of equal values. */
const countEach = (pairs: readonly (readonly unknown[])[]) => {
  const sums = new Map<unknown, number>();
  for (const [value, count] of pairs) sums.set(value, (sums.get(value) ?? 0) + Number(count));
  return sums;
};

describe('searches of random records', () => {
  const app = useTestApp({
    endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined },
  });

  const rowsOf = async (name: string, parameters: Record<string, string>) => {
    const { status, rows, error } = await app.query(name, parameters);
    expect([status, error?.message, parameters['query']]).toEqual([200, undefined, parameters['query']]);
    return rows;
  };

  test.each(SEARCHED_KINDS)(
    'of kind %s find exactly the records of the reference implementation',
    async kind => {
      for (let set = 0; set < SETS; set++) {
        const seed = Math.trunc(performance.timeOrigin) + set;
        const project = `${kind}-${set}`;
        const drafts = fc.sample(recordDraft, { numRuns: RECORDS, seed });
        const records = drafts.map((draft, index) =>
          draft(kind, { id: `r${index}`, at: micros(NOW) - BigInt(index) * 1_000_000n, project }),
        );
        await app.append(kind, records);
        const fields = fieldsOf(kind);
        for (const [index, terms] of fc
          .sample(expressionOf(kind), { numRuns: EXPRESSIONS, seed })
          .entries()) {
          const query = formatExpression(terms);
          const expected = records.filter(record => matchesExpression(kind, record, terms));
          const found = await rowsOf('logs.search', { project, kind, query });
          expect({ seed, query, ids: found.map(row => row['id']) }).toEqual({
            seed,
            query,
            ids: expected.map(({ id }) => id),
          });
          const counted = await rowsOf('logs.histogram', { project, kind, query });
          const categories = expected.map(record => {
            const status = readField(kind, record, 'status');
            return status === undefined ? 'other' : `${status[0]}xx`;
          });
          expect({ query, counts: countEach(counted.map(row => [row['category'], row['count']])) }).toEqual({
            query,
            counts: countEach(categories.map(category => [category, 1])),
          });
          const field = fields[index % fields.length] ?? 'status';
          const values = await rowsOf('logs.fields', { project, kind, query, field });
          const expectedValues = expected.flatMap(record => readField(kind, record, field) ?? []);
          expect({ query, values: countEach(values.map(row => [row['value'], row['count']])) }).toEqual({
            query,
            values: countEach(expectedValues.map(value => [value, 1])),
          });
        }
      }
    },
    300_000,
  );
});
