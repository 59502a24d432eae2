// Runs the examples of an endpoint's definition: stores the records of an example in a temporary embedded store, runs the endpoint
// and compares the rows.
import { isDeepStrictEqual } from 'node:util';
import { DendroError, OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';
import { parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import { checkEndpoint, type Endpoint, listColumns } from '../endpoint/catalog.ts';
import type { Example } from '../endpoint/definition.ts';
import { encodeRows } from '../endpoint/encode-rows.ts';
import { bindParameters } from '../endpoint/parameters.ts';
import { runEndpoint } from '../endpoint/run-endpoint.ts';
import { parseBody } from '../intake/parse-body.ts';
import { openStore, type StoreOptions } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { withTemporaryDirectory } from './temporary-directory.ts';

export interface ExampleOutcome {
  readonly title: string;
  /** What is wrong, over several lines; undefined: the rows are as expected. */
  readonly problem: string | undefined;
}

/** 100 years, so that an example can have records of any age. */
const RETENTION_DAYS = 36_500;

/** Every example gets an empty store. Throws if the store rejects the SQL of the endpoint. */
export async function* runExamples(
  endpoint: Endpoint,
  options: StoreOptions,
): AsyncGenerator<ExampleOutcome> {
  for (const example of endpoint.definition.examples)
    yield await withTemporaryDirectory('dendro-example-', async dataDirectory => {
      const store = await openStore({ ...options, clickhouse: undefined, dataDirectory });
      try {
        await checkEndpoint(endpoint, store);
        return { title: example.title, problem: await runExample(store, endpoint, example) };
      } finally {
        await store.close();
      }
    });
}

/** Needs an empty store. Returns what is wrong (ExampleOutcome.problem). */
export async function runExample(
  store: Store,
  endpoint: Endpoint,
  example: Example,
): Promise<string | undefined> {
  const nowMicros = parseTimestamp(example.now);
  if (nowMicros === undefined) return `  now: ${example.now} is not a timestamp; allowed: ${TIMESTAMP_FORMS}`;
  try {
    await store.append(toBatches(example, nowMicros));
    const parameters = new URLSearchParams(
      Object.entries(example.parameters).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const values = bindParameters(endpoint.definition, parameters);
    const { value: result } = await runEndpoint({ store, clock: () => nowMicros }, endpoint, values);
    const encoding = { format: 'json', isoTimestamps: false } as const;
    const { body } = await encodeRows(listColumns(endpoint.definition), result.rows, encoding);
    const { result: rows } = JSON.parse(body.toString()) as { result: unknown[] };
    if (isDeepStrictEqual(rows, example.rows)) return undefined;
    return `  expected ${formatRows(example.rows)}\n  returned ${formatRows(rows)}`;
  } catch (error) {
    if (!(error instanceof DendroError || error instanceof OperatorError)) throw error;
    return `  ${error.message}`;
  }
}

/** Validates the records by the same rules as records that a sender posts. Throws if a record is rejected. */
async function* toBatches({ records }: Example, nowMicros: bigint): AsyncGenerator<LogLines> {
  for (const [kind, values = []] of Object.entries(records) as [LogKind, unknown[]][]) {
    const { batches } = parseBody({
      data: Buffer.from(JSON.stringify(values)),
      contentCoding: '',
      format: 'json',
      kind,
      context: { nowMicros: Number(nowMicros), retentionDays: RETENTION_DAYS },
      needsDeduplication: false,
    });
    for (const { accepted, lines, errors } of batches) {
      const [error] = errors;
      if (error !== undefined)
        throw new OperatorError(`record ${error.index + 1} of kind ${kind}: ${error.message}`);
      if (accepted > 0) yield { kind, count: accepted, lines };
    }
  }
}

/** Each row on a line of its own. */
function formatRows(rows: readonly unknown[]): string {
  return rows.length === 0 ? 'no rows' : rows.map(row => `\n    ${JSON.stringify(row)}`).join('');
}
