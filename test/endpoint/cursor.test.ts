import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Position, positionAfter, type RowKey } from '../../src/endpoint/pages.ts';

/** The order of the records, and what the SQL of an endpoint with pages returns from a position on. */
const compare = (a: RowKey, b: RowKey) =>
  Number(b.timestampMicros - a.timestampMicros) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
const rowsFrom = (rows: readonly RowKey[], start: Position | undefined) =>
  rows
    .filter(
      ({ timestampMicros, id }) =>
        start === undefined ||
        timestampMicros < start.timestampMicros ||
        (timestampMicros === start.timestampMicros && id >= start.id),
    )
    .slice(start?.skip ?? 0);

const LONG = 'x'.repeat(256);
const rowKey = fc.record({
  timestampMicros: fc.bigInt({ min: 1n, max: 2n }),
  id: fc.constantFrom(
    '',
    'a',
    'a-10.0.0.1',
    'a-10.0.0.2',
    'b',
    '10.0.0.1',
    LONG,
    `${LONG}-10.0.0.1`,
    `${LONG}z`,
  ),
});
const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 });

test('pages of any size, for tokens with and without redaction, have every record once', () => {
  fc.assert(
    fc.property(fc.array(rowKey, { maxLength: 30 }), sizes, fc.boolean(), (unordered, pages, redacted) => {
      const rows = unordered.sort(compare);
      const seen: RowKey[] = [];
      let start: Position | undefined;
      for (let index = 0; seen.length < rows.length; index++) {
        const page = rowsFrom(rows, start).slice(0, pages[index % pages.length]);
        seen.push(...page);
        start = positionAfter(page, start, redacted);
        expect(page.length).toBeGreaterThan(0);
      }
      expect(seen).toEqual(rows);
    }),
    { numRuns: 2_000 },
  );
});

test('the position for a token with redaction has no id and counts all records of the timestamp', () => {
  const at = (id: string): RowKey => ({ timestampMicros: 5n, id });
  const newer = { timestampMicros: 6n, id: 'z' };
  const counted = { timestampMicros: 5n, id: '', skip: 2 };
  expect(positionAfter([newer, at('a'), at('b')], undefined, true)).toEqual(counted);
  expect(positionAfter([newer, at('a'), at('b')], undefined, false)).toEqual({ ...at('b'), skip: 1 });
  expect(positionAfter([at('c')], counted, true)).toEqual({ ...counted, skip: 3 });
});
