// Endpoint folders of the operator's own, for tests that need a query which is slow, or which fails.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The folder of the endpoints that come with the program. */
export const BUILT_IN = join(import.meta.dirname, '../../endpoints');

export interface EndpointFiles {
  readonly yaml: string;
  readonly sql: string;
  /** For ClickHouse; none: that store is not tested with it. */
  readonly clickhouse?: string;
}

export interface OwnEndpoints {
  readonly folder: string;
  remove(): void;
}

/** Writes one folder for each entry, named by its key. */
export function writeOwnEndpoints(endpoints: Readonly<Record<string, EndpointFiles>>): OwnEndpoints {
  const folder = mkdtempSync(join(tmpdir(), 'dendro-endpoints-'));
  for (const [name, { yaml, sql, clickhouse }] of Object.entries(endpoints)) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'endpoint.yaml'), yaml);
    writeFileSync(join(folder, name, 'duckdb.sql'), sql);
    if (clickhouse !== undefined) writeFileSync(join(folder, name, 'clickhouse.sql'), clickhouse);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The example of docs/write-endpoints.md, to the letter. */
export function documentedEndpoint(): EndpointFiles {
  const text = readFileSync(join(import.meta.dirname, '../../docs/write-endpoints.md'), 'utf8');
  const block = (opening: string) => {
    const found = text.split(/^```\w*\n/m).find(part => part.startsWith(opening));
    if (found === undefined)
      throw new Error(`docs/write-endpoints.md has no block that opens with ${opening}`);
    return found.slice(0, found.indexOf('```'));
  };
  return {
    yaml: block('# endpoint.yaml'),
    sql: block('-- duckdb.sql'),
    clickhouse: block('-- clickhouse.sql'),
  };
}

const definition = (id: string, name: string, parameter: string) => `
id: ${id}
name: ${name}
description: Made for a test.
reads: edge
parameters:
  ${parameter}: { type: text, required: true, description: Any text. }
columns:
  answer: { type: integer, description: Any number. }
cache: none
`;

/** Takes as long as its parameter `milliseconds` says, and holds one connection of the store all the while. */
export const SLEEP: EndpointFiles = {
  yaml: definition('5b0c1f5e-52a4-4f6e-8f0b-7d8f3a1c9e11', 'test.sleep', 'milliseconds'),
  sql: 'select coalesce(cast(sleep_ms(cast($milliseconds as bigint)) as integer), 1) as answer',
};

/** Passes every check at start, and fails in the engine unless its parameter `number` is one: a defect of its author. */
export const FAULT: EndpointFiles = {
  yaml: definition('a3b8b0c7-6f0e-4b52-9a63-2f6f0d5c7e22', 'test.fault', 'number'),
  sql: 'select cast($number as integer) as answer',
};
