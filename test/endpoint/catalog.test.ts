import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from '../../src/app.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import type { Event } from '../../src/observe/event.ts';
import { testConfig } from '../support/app.ts';

const BROKEN_FOLDERS = join(import.meta.dirname, 'broken-folders');

// Each folder below broken-folders, the file that is at fault, and what is to be said of it.
const BROKEN: readonly [reason: string, file: string, fault: RegExp][] = [
  ['two-documents', 'edge.ids/endpoint.yaml', /a single document/],
  ['unresolved-alias', 'edge.ids/endpoint.yaml', /alias "nothing" at line \d+/],
  ['doubled-key', 'edge.ids/endpoint.yaml', /duplicated .*key at line \d+/],
  ['empty-definition', 'edge.ids/endpoint.yaml', /is empty/],
  ['missing-definition', 'edge.ids/endpoint.yaml', /is missing/],
  ['missing-sql', 'edge.ids/duckdb.sql', /is missing/],
  ['missing-key', 'edge.ids/endpoint.yaml', /cache: is missing/],
  ['unknown-key', 'edge.ids/endpoint.yaml', /sandboxing: unknown key/],
  ['unknown-parameter-key', 'edge.ids/endpoint.yaml', /parameters\.project\.default: unknown key/],
  ['bad-id', 'edge.ids/endpoint.yaml', /id: must be a UUID/],
  ['bad-name', 'edge.ids/endpoint.yaml', /name: must be dotted lower-case words/],
  ['taken-name', 'edge.ids/endpoint.yaml', /logs\.all is already used by .*endpoints.logs\.all/],
  [
    'taken-id',
    'edge.ids/endpoint.yaml',
    /36d4086c-7022-4186-9a0f-e33ec7d730da is already used by .*endpoints.logs\.all/,
  ],
  ['taken-name-among-own', 'edge.two/endpoint.yaml', /edge\.same is already used by .*edge\.one/],
  ['bad-parameter-name', 'edge.ids/endpoint.yaml', /parameters\.Project-Ref/],
  ['bad-parameter-type', 'edge.ids/endpoint.yaml', /parameters\.project\.type/],
  ['bad-column-type', 'edge.ids/endpoint.yaml', /columns\.timestamp\.type: .*unix_microseconds/],
  ['no-columns', 'edge.ids/endpoint.yaml', /columns: needs at least one column/],
  ['too-many-rows', 'edge.ids/endpoint.yaml', /max_rows: .*1000/],
  ['half-a-row', 'edge.ids/endpoint.yaml', /max_rows: must be a whole number/],
  ['no-rows', 'edge.ids/endpoint.yaml', /max_rows: .*1/],
  ['bad-cache', 'edge.ids/endpoint.yaml', /cache\.lifetime_seconds: must be >=1/],
  ['reserved-name-now', 'edge.ids/endpoint.yaml', /parameters\.now: the name now is reserved/],
  ['reserved-name-format', 'edge.ids/endpoint.yaml', /parameters\.format: the name format is reserved/],
  ['fallback-not-among-choices', 'edge.ids/endpoint.yaml', /area\.fallback: must be one of the choices/],
  ['renamed-key', 'edge.ids/endpoint.yaml', /parameters\.area\.otherwise: this key is now called fallback/],
  ['fallback-inherited-name', 'edge.ids/endpoint.yaml', /area\.fallback: must be one of the choices/],
  ['unusable-name', 'edge.ids/endpoint.yaml', /area\.choices\.constructor: this name is not allowed/],
  ['numbered-tiers', 'edge.ids/endpoint.yaml', /area: a tier cannot be named by a number/],
  ['no-choices', 'edge.ids/endpoint.yaml', /area: needs at least one choice/],
  [
    'choices-have-different-names',
    'edge.ids/endpoint.yaml',
    /area: every choice must have values of the same names and types/,
  ],
  [
    'choices-have-different-types',
    'edge.ids/endpoint.yaml',
    /area: every choice must have values of the same names and types/,
  ],
  [
    'choice-value-has-a-used-name',
    'edge.ids/endpoint.yaml',
    /area: the name project is reserved or already used/,
  ],
  ['empty-sql', 'edge.ids/duckdb.sql', /no statement/i],
  ['broken-sql', 'edge.ids/duckdb.sql', /syntax error at or near "selekt"/],
  ['unknown-table', 'edge.ids/duckdb.sql', /Table with name requests does not exist/],
  ['two-statements', 'edge.ids/duckdb.sql', /holds 2 statements; one SELECT is allowed/],
  ['writes-after-select', 'edge.ids/duckdb.sql', /holds 2 statements; one SELECT is allowed/],
  ['insert', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['delete', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['create-table', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['pragma', 'edge.ids/duckdb.sql', /is not a SELECT|is refused/],
  ['attach', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['copy', 'edge.ids/duckdb.sql', /is not a SELECT|is refused/],
  ['set', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['install', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['reads-a-file', 'edge.ids/duckdb.sql', /is refused by DuckDB: Permission Error/],
  [
    'undeclared-parameter',
    'edge.ids/duckdb.sql',
    /uses \$owner, which is not declared; declared are \$project, \$now/,
  ],
  ['positional-parameter', 'edge.ids/duckdb.sql', /uses \$1, which is not declared/],
  [
    'wrong-column-names',
    'edge.ids/duckdb.sql',
    /answers the columns record, timestamp, but id, timestamp are declared/,
  ],
  [
    'wrong-column-order',
    'edge.ids/duckdb.sql',
    /answers the columns timestamp, id, but id, timestamp are declared/,
  ],
  ['missing-column', 'edge.ids/duckdb.sql', /answers the columns id, but id, timestamp are declared/],
  ['surplus-column', 'edge.ids/duckdb.sql', /answers the columns id, timestamp, project, but/],
  ['wrong-column-type', 'edge.ids/duckdb.sql', /answers timestamp as VARCHAR, which is no unix_microseconds/],
];

describe('a broken endpoint folder', () => {
  let dataDirectory: string;
  beforeAll(() => {
    dataDirectory = mkdtempSync(join(tmpdir(), 'dendro-test-'));
  });
  afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }));

  const start = async (own: string) => {
    const config = testConfig(dataDirectory);
    const events: Event[] = [];
    const endpointFolders = { ...config.endpointFolders, custom: own };
    const fault = await startApp({ ...config, endpointFolders }, event => events.push(event)).then(
      async app => {
        await app.close();
        return undefined;
      },
      (error: unknown) => error,
    );
    return { fault, events };
  };

  test.each(BROKEN)(
    '%s stops the start with one line that names %s and the fault',
    async (reason, file, fault) => {
      const own = join(BROKEN_FOLDERS, reason);
      const { fault: error, events } = await start(own);
      expect(error).toBeInstanceOf(OperatorError);
      const { message } = error as OperatorError;
      expect(message.startsWith(`${join(own, ...file.split('/'))}: `)).toBe(true);
      expect(message).toMatch(fault);
      expect(message).not.toContain('\n');
      expect(events.filter(({ type }) => type === 'listening')).toEqual([]);
    },
  );

  test('each of them is in this list', () => {
    expect(BROKEN.map(([reason]) => reason).sort()).toEqual(readdirSync(BROKEN_FOLDERS).sort());
  });

  // Written here, since the formatter reads every YAML file of the project and stops at one that does not parse.
  test.each(['name: [never closed', 'name: a: b', '\tname: a', 'name: "\\q"'])(
    'YAML that does not parse (%j) stops the start with one line that names the file and the place',
    async yaml => {
      const own = mkdtempSync(join(tmpdir(), 'dendro-test-'));
      try {
        mkdirSync(join(own, 'edge.ids'));
        writeFileSync(join(own, 'edge.ids', 'endpoint.yaml'), yaml);
        const { fault } = await start(own);
        expect(fault).toBeInstanceOf(OperatorError);
        const { message } = fault as OperatorError;
        expect(message.startsWith(`${join(own, 'edge.ids', 'endpoint.yaml')}: `)).toBe(true);
        expect(message).toMatch(/line 1, column \d+/);
        expect(message).not.toContain('\n');
      } finally {
        rmSync(own, { recursive: true, force: true });
      }
    },
  );

  test('a folder of endpoints that does not exist stops the start', async () => {
    const own = join(BROKEN_FOLDERS, 'no-such-folder');
    const { fault } = await start(own);
    expect(fault).toBeInstanceOf(OperatorError);
    expect((fault as OperatorError).message).toContain(own);
  });

  test('leaves nothing behind: mended, the same data directory starts', async () => {
    await start(join(BROKEN_FOLDERS, 'insert'));
    expect(await start(join(import.meta.dirname, 'custom-endpoints'))).toMatchObject({ fault: undefined });
  });

  test('files beside endpoint folders, and hidden folders, are no endpoints', async () => {
    const own = mkdtempSync(join(tmpdir(), 'dendro-test-'));
    try {
      writeFileSync(join(own, 'README.md'), 'Our endpoints.');
      mkdirSync(`${own}${sep}.git`);
      expect(await start(own)).toMatchObject({ fault: undefined });
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  });
});
