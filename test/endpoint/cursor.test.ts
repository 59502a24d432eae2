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
const pages = fc.array(fc.record({ size: fc.integer({ min: 1, max: 4 }), redacted: fc.boolean() }), {
  minLength: 1,
  maxLength: 5,
});

test('pages of any size, for tokens with and without redaction, have every record once', () => {
  fc.assert(
    fc.property(fc.array(rowKey, { maxLength: 30 }), pages, (unordered, sizes) => {
      const rows = unordered.sort(compare);
      const seen: RowKey[] = [];
      let start: Position | undefined;
      for (let index = 0; seen.length < rows.length; index++) {
        const { size, redacted } = sizes[index % sizes.length] ?? { size: 1, redacted: false };
        const page = rowsFrom(rows, start).slice(0, size);
        seen.push(...page);
        start = positionAfter(page, start, redacted);
        expect(page.length).toBeGreaterThan(0);
      }
      expect(seen).toEqual(rows);
    }),
    { numRuns: 2_000 },
  );
});

test('the position for a token with redaction has no id that contains an address', () => {
  const at = (id: string): RowKey => ({ timestampMicros: 5n, id });
  const newer = { timestampMicros: 6n, id: 'z' };
  const [safe, address] = [at('a'), at('b-10.0.0.1')];
  expect(positionAfter([newer, safe, address], undefined, true)).toEqual({
    timestampMicros: 5n,
    id: '',
    skip: 2,
  });
  expect(positionAfter([newer, safe, address], undefined, false)).toEqual({ ...address, skip: 1 });
  expect(positionAfter([newer, address, at('c')], undefined, true)).toEqual({ ...at('c'), skip: 1 });
  expect(positionAfter([address], { ...safe, skip: 1 }, true)).toEqual({ ...safe, skip: 2 });
});
