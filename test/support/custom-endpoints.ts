// Custom endpoint folders, for tests that need a slow or a failing query.
import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** The directory of the built-in endpoints. */
export const BUILT_IN = join(import.meta.dirname, '../../endpoints');

/** The directory of the explore pack. */
export const EXPLORE = join(import.meta.dirname, '../../packs/explore');

/** The directory of the alerts pack. */
export const ALERTS = join(import.meta.dirname, '../../packs/alerts');

export interface EndpointFiles {
  readonly yaml: string;
  readonly sql: string;
  /** The SQL for ClickHouse; undefined: the endpoint is not tested on ClickHouse. */
  readonly clickhouse?: string;
  /** The content of explain.duckdb.sql. */
  readonly explain?: string | undefined;
  readonly explainClickhouse?: string | undefined;
}

export interface CustomEndpoints {
  readonly folder: string;
  remove(): void;
}

/** Writes one endpoint folder for each entry, named by its key, to a temporary directory. */
export function writeEndpointFolders(
  endpoints: Readonly<Record<string, EndpointFiles>>,
  folder = mkdtempSync(join(tmpdir(), 'dendro-endpoints-')),
): CustomEndpoints {
  for (const [name, files] of Object.entries(endpoints)) {
    mkdirSync(join(folder, name), { recursive: true });
    const contents: Record<string, string | undefined> = {
      'endpoint.yaml': files.yaml,
      'duckdb.sql': files.sql,
      'clickhouse.sql': files.clickhouse,
      'explain.duckdb.sql': files.explain,
      'explain.clickhouse.sql': files.explainClickhouse,
    };
    for (const [file, content] of Object.entries(contents))
      if (content !== undefined) writeFileSync(join(folder, name, file), content);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The example of docs/write-endpoints.md. */
export function documentedEndpoint(): EndpointFiles {
  const text = readFileSync(join(import.meta.dirname, '../../docs/write-endpoints.md'), 'utf8');
  const findBlock = (start: string) => {
    const found = text.split(/^```\w*\n/m).find(part => part.startsWith(start));
    if (found === undefined)
      throw new Error(`docs/write-endpoints.md has no code block that starts with ${start}`);
    return found.slice(0, found.indexOf('```'));
  };
  return {
    yaml: findBlock('# endpoint.yaml'),
    sql: findBlock('-- duckdb.sql'),
    clickhouse: findBlock('-- clickhouse.sql'),
    explain: findBlock('-- explain.duckdb.sql'),
    explainClickhouse: findBlock('-- explain.clickhouse.sql'),
  };
}

/** Definitions of an endpoint for tests, and its SQL files. A parameter without a type is a required text. */
interface TestEndpoint extends Omit<EndpointFiles, 'yaml'> {
  readonly parameters?: Readonly<Record<string, object>>;
  /** The types of the columns. */
  readonly columns: Readonly<Record<string, string>>;
  readonly isCached?: boolean;
  /** Other fields of the definition. */
  readonly more?: object;
}

export function testEndpoint(name: string, definition: TestEndpoint): EndpointFiles {
  const { parameters = {}, columns, isCached = false, more, ...files } = definition;
  const describe = ([key, fields]: [string, object]) => [key, { description: 'Any.', ...fields }];
  const digits = hash('sha256', name).slice(0, 12);
  const yaml = {
    id: `7f6f8a52-3c0c-4b8e-9d6b-${digits}`,
    name,
    description: 'An endpoint for tests.',
    reads: 'edge',
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, fields]) =>
        describe([key, 'type' in fields ? fields : { type: 'text', required: true, ...fields }]),
      ),
    ),
    columns: Object.fromEntries(Object.entries(columns).map(([key, type]) => describe([key, { type }]))),
    cache: isCached ? { lifetime_seconds: 900, warming_seconds: 300 } : 'none',
    ...more,
  };
  return { yaml: stringify(yaml), ...files };
}

/** Runs for the time given by its parameter `milliseconds` and occupies one connection of the store. */
export const SLEEP = testEndpoint('test.sleep', {
  parameters: { milliseconds: {} },
  columns: { answer: 'integer' },
  sql: 'select coalesce(cast(sleep_ms(cast($milliseconds as bigint)) as integer), 1) as answer',
});

/** Passes every check at startup, and fails in the store if its parameter `number` is not a number. */
export const FAULT = testEndpoint('test.fault', {
  parameters: { number: {} },
  columns: { answer: 'integer' },
  sql: 'select cast($number as integer) as answer',
});
