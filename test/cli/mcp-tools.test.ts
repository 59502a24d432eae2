import { expect, test } from 'vitest';
import { formatResult, UNTRUSTED_NOTE } from '../../src/cli/mcp-tools.ts';

const headers = new Headers({ 'Dendro-Next-Cursor': 'next' });
const format = (rows: readonly object[], maxBytes: number) => {
  const text = formatResult({ headers }, JSON.stringify({ result: rows }), { maxRows: 100, maxBytes });
  return JSON.parse(text) as { note: string; rows: Record<string, unknown>[]; row_count: number };
};
const small = { id: 'b', event_message: 'm', metadata: {} };

test.each(['x', '"', '\u0001', '\u20ac'])(
  'a first row above the byte limit is returned with cut values of %j, and the note says how to continue',
  character => {
    const long = character.repeat(5_000);
    const large = { id: 'a', event_message: long, metadata: { long } };
    const result = format([large, small], 1_024);
    expect(result).toMatchObject({ row_count: 1, clipped: ['tool-byte-limit'] });
    expect(result.note).toMatch(/smaller time range/);
    expect(result).not.toHaveProperty('next_cursor');
    const [row] = result.rows;
    expect(row).toMatchObject({ id: 'a', event_message: expect.stringMatching(/^[^…]{42}…$/u) });
    expect(row?.['metadata']).toMatch(/^\{"long":"/);
    expect(Buffer.byteLength(JSON.stringify(result.rows))).toBeLessThanOrEqual(1_024);
  },
);

test('a cut row that is the last one of its page has the cursor of the next page', () => {
  const result = format([{ id: 'a', event_message: 'x'.repeat(5_000) }], 1_024);
  expect(result).toMatchObject({ row_count: 1, next_cursor: 'next' });
});

test('rows beyond the limit are left out, without the cursor of the page after them', () => {
  const result = format(
    Array.from({ length: 101 }, () => small),
    100_000,
  );
  expect(result).toMatchObject({ row_count: 100, clipped: ['tool-row-limit'] });
  expect(result).not.toHaveProperty('next_cursor');
});

test('rows that fit are unchanged', () => {
  expect(format([small], 1_024)).toMatchObject({ note: UNTRUSTED_NOTE, rows: [small], next_cursor: 'next' });
});
