import { expect, test } from 'vitest';
import { BUILT_IN } from '../support/custom-endpoints.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

// A custom endpoint with an integer and a boolean: `npm test` on DuckDB, `npm run test:clickhouse` on ClickHouse.

const TYPED = {
  yaml: `
id: 5d0f7f5e-4f0c-4e7a-9a83-7c9a2b1d6e44
name: test.typed
description: Returns its parameters.
reads: edge
parameters:
  size: { type: integer, min: 1, max: 50, default: 10, description: Any size. }
  verbose: { type: boolean, default: false, description: Any flag. }
  strict: { type: boolean, description: Any flag. }
columns:
  size: { type: integer, description: The size. }
  verbose: { type: text, description: The flag. }
  strict: { type: text, description: The flag. }
cache: none
`,
  sql: `select $size as size, case when $verbose then 'yes' else 'no' end as verbose,
    case when $strict then 'yes' when not $strict then 'no' else 'absent' end as strict`,
  clickhouse: `select {size:Nullable(Int64)} as size, if({verbose:Nullable(Bool)}, 'yes', 'no') as verbose,
    multiIf({strict:Nullable(Bool)} is null, 'absent', {strict:Nullable(Bool)}, 'yes', 'no') as strict`,
};

const { folder: custom } = useEndpoints({ typed: TYPED });
const app = useApp({ endpointFolders: { builtIn: BUILT_IN, custom } });

test('integers and booleans are bound as such, and an absent value is the default or null', async () => {
  const rowOf = async (parameters: Record<string, string>) =>
    (await app.query('test.typed', parameters)).rows?.[0];
  expect(await rowOf({})).toEqual({ size: 10, verbose: 'no', strict: 'absent' });
  const empty = await rowOf({ size: '', verbose: '', strict: '' });
  expect(empty).toEqual({ size: 10, verbose: 'no', strict: 'absent' });
  const given = await rowOf({ size: '50', verbose: 'true', strict: 'false' });
  expect(given).toEqual({ size: 50, verbose: 'yes', strict: 'no' });
});

test.for([
  ['verbose', 'yes', 'verbose must be true or false'],
  ['verbose', 'TRUE', 'verbose must be true or false'],
  ['strict', '1', 'strict must be true or false'],
  ['size', '0', 'size must be'],
  ['size', '51', 'size must be'],
  ['size', '1.5', 'size must be a whole number from 1 to 50'],
  ['size', '-1', 'size must be'],
  ['size', '0x10', 'size must be'],
])('%s=%s is rejected with 400 and the allowed values', async ([name = '', value = '', message]) => {
  const { status, text } = await app.query('test.typed', { [name]: value });
  expect(status).toBe(400);
  expect(JSON.parse(text).error.message).toContain(message);
});
