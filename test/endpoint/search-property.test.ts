import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fieldsOf } from '../../src/domain/log-fields.ts';
import { micros, NOW, queryPages } from '../support/app.ts';
import { isOnClickHouse } from '../support/clickhouse.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import {
  expressionOf,
  formatExpression,
  matchesExpression,
  readField,
  recordDraft,
  SEARCHED_KINDS,
} from '../support/reference-search.ts';
import { useApp } from '../support/use-app.ts';

/** The ClickHouse of the tests takes about a second for a search. */
const [SETS, EXPRESSIONS] = isOnClickHouse() ? [1, 12] : [2, 40];
const RECORDS = 90; // all fit into one page
/** To try other records and expressions, set another seed. With this one, an empty column matched `*` once. */
const SEED = Number(process.env['DENDRO_SEARCH_SEED'] ?? 1795013703788);

/** Sums the counts of equal values. */
const countEach = (pairs: readonly (readonly unknown[])[]) => {
  const sums = new Map<unknown, number>();
  for (const [value, count] of pairs) sums.set(value, (sums.get(value) ?? 0) + Number(count));
  return sums;
};

describe('searches of random records', () => {
  const app = useApp({
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
        const seed = SEED + set;
        const project = `${kind}-${set}`;
        const drafts = fc.sample(recordDraft, { numRuns: RECORDS, seed });
        const records = drafts.map((draft, index) =>
          draft(kind, { id: `r${index}`, at: micros(NOW) - BigInt(index) * 1_000_000n, project }),
        );
        await app.append(kind, records);
        const fields = fieldsOf(kind);
        for (const [index, expression] of fc
          .sample(expressionOf(kind), { numRuns: EXPRESSIONS, seed })
          .entries()) {
          const query = formatExpression(expression);
          const expected = records.filter(record => matchesExpression(kind, record, expression));
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

  test('of one kind have every record once on their pages', async () => {
    const seed = SEED;
    const project = 'pages';
    const records = fc.sample(recordDraft, { numRuns: 250, seed }).map((draft, index) => {
      const at = micros(NOW) - BigInt(index >> 3) * 1_000_000n; // several records share a timestamp
      return draft('edge', { id: `r${String(index).padStart(3, '0')}`, at, project });
    });
    await app.append('edge', records);
    let pageCount = 0;
    const count = isOnClickHouse() ? 3 : EXPRESSIONS;
    for (const expression of [{ all: [] }, ...fc.sample(expressionOf('edge'), { numRuns: count, seed })]) {
      const query = formatExpression(expression);
      const expected = records.filter(record => matchesExpression('edge', record, expression));
      const pages = await queryPages(app, 'logs.search', { project, kind: 'edge', query });
      pageCount += pages.length;
      const found = pages.flatMap(({ rows }) => rows.map(row => row['id']));
      expect({ seed, query, found }).toEqual({ seed, query, found: expected.map(({ id }) => id) });
    }
    expect(pageCount).toBeGreaterThan(count + 1);
  }, 300_000);

  test('of all kinds together find exactly the records of the reference implementation, page by page', async () => {
    const seed = SEED;
    const project = 'of-all-kinds';
    const drafts = fc.sample(recordDraft, { numRuns: 150, seed });
    const stored = drafts.map((draft, index) => {
      const kind = SEARCHED_KINDS[index % SEARCHED_KINDS.length] ?? 'edge';
      const at = micros(NOW) - BigInt(index >> 2) * 1_000_000n; // several records share a timestamp
      return { kind, record: draft(kind, { id: `r${String(index).padStart(3, '0')}`, at, project }) };
    });
    for (const kind of SEARCHED_KINDS)
      await app.append(
        kind,
        stored.flatMap(each => (each.kind === kind ? [each.record] : [])),
      );
    const parameters = { project, kind: 'all' };
    for (const expression of [
      { all: [] },
      ...fc.sample(expressionOf('all'), { numRuns: isOnClickHouse() ? 3 : EXPRESSIONS, seed }),
    ]) {
      const query = formatExpression(expression);
      const expected = stored.filter(({ kind, record }) => matchesExpression(kind, record, expression));
      const pages = await queryPages(app, 'logs.search', { ...parameters, query });
      const found = pages.flatMap(({ rows }) => rows.map(row => [row['kind'], row['id']]));
      expect({ seed, query, found }).toEqual({
        seed,
        query,
        found: expected.map(({ kind, record }) => [kind, record.id]),
      });
      const counted = await rowsOf('logs.histogram', { ...parameters, query });
      expect({ query, counts: countEach(counted.map(row => [row['category'], row['count']])) }).toEqual({
        query,
        counts: countEach(expected.map(({ kind }) => [kind, 1])),
      });
    }
  }, 300_000);
});
