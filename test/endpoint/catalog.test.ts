import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from '../../src/app.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import { checkEndpoint, loadCatalog } from '../../src/endpoint/catalog.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { testConfig, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, documentedEndpoint, writeEndpointFolders } from '../support/custom-endpoints.ts';

const BROKEN_FOLDERS = join(import.meta.dirname, 'broken-folders');

/** Each folder in broken-folders, the broken file, and the expected message. */
const BROKEN: readonly [reason: string, file: string, message: RegExp][] = [
  ['two-documents', 'edge.ids/endpoint.yaml', /a single document/],
  ['unresolved-alias', 'edge.ids/endpoint.yaml', /alias "nothing" at line \d+/],
  ['duplicate-key', 'edge.ids/endpoint.yaml', /duplicated .*key at line \d+/],
  ['empty-definition', 'edge.ids/endpoint.yaml', /is empty/],
  ['missing-definition', 'edge.ids/endpoint.yaml', /is missing/],
  ['missing-sql', 'edge.ids/duckdb.sql', /is missing/],
  ['missing-key', 'edge.ids/endpoint.yaml', /cache: is missing/],
  ['unknown-key', 'edge.ids/endpoint.yaml', /sandboxing: unknown key/],
  ['unknown-parameter-key', 'edge.ids/endpoint.yaml', /parameters\.project\.default: unknown key/],
  ['invalid-id', 'edge.ids/endpoint.yaml', /id: must be a UUID/],
  ['invalid-name', 'edge.ids/endpoint.yaml', /name: must be dotted lower-case words/],
  [
    'name-of-built-in-endpoint',
    'edge.ids/endpoint.yaml',
    /logs\.all is already used by .*endpoints.logs\.all/,
  ],
  [
    'id-of-built-in-endpoint',
    'edge.ids/endpoint.yaml',
    /36d4086c-7022-4186-9a0f-e33ec7d730da is already used by .*endpoints.logs\.all/,
  ],
  [
    'duplicate-name-in-custom-endpoints',
    'edge.two/endpoint.yaml',
    /edge\.same is already used by .*edge\.one/,
  ],
  ['invalid-parameter-name', 'edge.ids/endpoint.yaml', /parameters\.Project-Ref/],
  ['invalid-parameter-type', 'edge.ids/endpoint.yaml', /parameters\.project\.type/],
  ['invalid-column-type', 'edge.ids/endpoint.yaml', /columns\.timestamp\.type: .*unix_microseconds/],
  ['no-columns', 'edge.ids/endpoint.yaml', /columns: needs at least one column/],
  ['too-large-max-rows', 'edge.ids/endpoint.yaml', /max_rows: .*1000/],
  ['fractional-max-rows', 'edge.ids/endpoint.yaml', /max_rows: must be a whole number/],
  ['zero-max-rows', 'edge.ids/endpoint.yaml', /max_rows: .*1/],
  ['invalid-cache', 'edge.ids/endpoint.yaml', /cache\.lifetime_seconds: must be >=1/],
  ['reserved-name-now', 'edge.ids/endpoint.yaml', /parameters\.now: the name now is reserved/],
  [
    'reserved-name-timestamps',
    'edge.ids/endpoint.yaml',
    /parameters\.timestamps: the name timestamps is reserved/,
  ],
  ['reserved-name-format', 'edge.ids/endpoint.yaml', /parameters\.format: the name format is reserved/],
  ['fallback-not-among-choices', 'edge.ids/endpoint.yaml', /area\.fallback: must be one of the choices/],
  ['renamed-key', 'edge.ids/endpoint.yaml', /parameters\.area\.otherwise: this key is now called fallback/],
  ['fallback-inherited-name', 'edge.ids/endpoint.yaml', /area\.fallback: must be one of the choices/],
  ['forbidden-name', 'edge.ids/endpoint.yaml', /area\.choices\.constructor: this name is not allowed/],
  ['numeric-tier-names', 'edge.ids/endpoint.yaml', /area: a tier cannot be named by a number/],
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
  [
    'optional-log-kind',
    'edge.ids/endpoint.yaml',
    /reads: kind must be required, or have a default or a fallback at line 4/,
  ],
  [
    'optional-retention-days',
    'edge.ids/endpoint.yaml',
    /range: tier must be required, or have a default or a fallback at line \d+/,
  ],
  [
    'unsafe-choice-value',
    'edge.ids/endpoint.yaml',
    /area\.choices\.rest\.level: must be a whole number from -9007199254740991 to 9007199254740991 at line \d+/,
  ],
  [
    'recursive-alias',
    'edge.ids/endpoint.yaml',
    /examples\.0: the alias refers to a value that contains it at line \d+/,
  ],
  ['empty-sql', 'edge.ids/duckdb.sql', /no statement/i],
  ['broken-sql', 'edge.ids/duckdb.sql', /at line 2: .*syntax error at or near "selekt"/],
  [
    'pin-not-applied',
    'edge.ids/duckdb.sql',
    /does not use \$pinned_projects: applies_pin is true, so the SQL must return only records of the projects/,
  ],
  [
    'pin-of-one-project',
    'edge.ids/duckdb.sql',
    /uses \$pinned_project, which is not declared; declared: \$now, \$pinned_projects/,
  ],
  [
    'explain-pin-not-applied',
    'edge.ids/explain.duckdb.sql',
    /does not use \$pinned_projects: applies_pin is true, so the SQL must return only records of the projects/,
  ],
  [
    'explain-without-conditions',
    'edge.ids/explain.duckdb.sql',
    /endpoint\.yaml has no key explain, the list of the conditions/,
  ],
  [
    'explain-wrong-columns',
    'edge.ids/explain.duckdb.sql',
    /but window_start, window_end, newest, oldest, project, window are declared/,
  ],
  ['explain-writes', 'edge.ids/explain.duckdb.sql', /is not a SELECT/],
  [
    'explain-duplicate-condition',
    'edge.ids/endpoint.yaml',
    /explain: the name newest is reserved or already used/,
  ],
  ['explain-no-conditions', 'edge.ids/endpoint.yaml', /explain: needs at least one condition/],
  [
    'unknown-table',
    'edge.ids/duckdb.sql',
    /reads the table requests, which is not allowed; allowed: edge_logs, /,
  ],
  ['two-statements', 'edge.ids/duckdb.sql', /holds 2 statements; one SELECT is allowed/],
  ['insert-after-select', 'edge.ids/duckdb.sql', /holds 2 statements; one SELECT is allowed/],
  ['insert', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['delete', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['create-table', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['pragma', 'edge.ids/duckdb.sql', /is not a SELECT|DuckDB rejects it:/],
  ['attach', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['copy', 'edge.ids/duckdb.sql', /is not a SELECT|DuckDB rejects it:/],
  ['set', 'edge.ids/duckdb.sql', /is not a SELECT/],
  ['install', 'edge.ids/duckdb.sql', /is not a SELECT/],
  [
    'reads-a-file',
    'edge.ids/duckdb.sql',
    /calls the table function read_text, which is not allowed; allowed: /,
  ],
  [
    'changes-the-engine',
    'edge.ids/duckdb.sql',
    /calls the table function enable_logging, which is not allowed; allowed: /,
  ],
  [
    'undeclared-parameter',
    'edge.ids/duckdb.sql',
    /uses \$owner, which is not declared; declared: \$project, \$now/,
  ],
  [
    'unused-parameter',
    'edge.ids/duckdb.sql',
    /does not use \$project: the definition declares the parameter project; use it in the SQL, or remove it/,
  ],
  [
    'unused-choice',
    'edge.ids/duckdb.sql',
    /uses neither \$period nor \$window_seconds: the definition declares the parameter period/,
  ],
  [
    'pattern-without-pin',
    'edge.ids/duckdb.sql',
    /does not use \$pinned_project: applies_pin is true, so the SQL must return only records of the projects/,
  ],
  ['positional-parameter', 'edge.ids/duckdb.sql', /uses \$1, which is not declared/],
  [
    'wrong-column-names',
    'edge.ids/duckdb.sql',
    /returns the columns record, timestamp, but id, timestamp are declared/,
  ],
  [
    'wrong-column-order',
    'edge.ids/duckdb.sql',
    /returns the columns timestamp, id, but id, timestamp are declared/,
  ],
  ['missing-column', 'edge.ids/duckdb.sql', /returns the columns id, but id, timestamp are declared/],
  ['undeclared-column', 'edge.ids/duckdb.sql', /returns the columns id, timestamp, project, but/],
  [
    'wrong-column-type',
    'edge.ids/duckdb.sql',
    /returns timestamp as VARCHAR, which is not a valid type for unix_microseconds/,
  ],
];

describe('a broken endpoint folder', () => {
  let dataDirectory: string;
  let store: Store;
  beforeAll(async () => {
    dataDirectory = mkdtempSync(join(tmpdir(), 'dendro-test-'));
    store = await openStore(testStoreOptions(join(dataDirectory, 'checks')));
  });
  afterAll(async () => {
    await store.close();
    rmSync(dataDirectory, { recursive: true, force: true });
  });

  /** Loads and checks the custom endpoints as a start of the service does. Returns the error. */
  const check = async (custom: string): Promise<unknown> => {
    try {
      const { endpoints } = loadCatalog({ builtIn: BUILT_IN, custom }, 'duckdb');
      for (const endpoint of endpoints.filter(({ isShipped }) => !isShipped))
        await checkEndpoint(endpoint, store);
      return undefined;
    } catch (error) {
      return error;
    }
  };

  const start = async (custom: string) => {
    const config = testConfig(join(dataDirectory, 'started'));
    const events: Event[] = [];
    const endpointFolders = { ...config.endpointFolders, custom };
    const problem = await startApp({ ...config, endpointFolders }, event => events.push(event)).then(
      async app => {
        await app.close();
        return undefined;
      },
      (error: unknown) => error,
    );
    return { problem, events };
  };

  test.each(BROKEN)('%s: one line names %s and the problem', async (reason, file, expected) => {
    const custom = join(BROKEN_FOLDERS, reason);
    const error = await check(custom);
    expect(error).toBeInstanceOf(OperatorError);
    const { message } = error as OperatorError;
    expect(message.startsWith(`${join(custom, ...file.split('/'))}: `)).toBe(true);
    expect(message).toMatch(expected);
    expect(message).not.toContain('\n');
  });

  test.each([
    ['definition', 'missing-key'],
    ['SQL', 'insert'],
  ])('startup fails because of a broken %s, before the service listens', async (_, reason) => {
    const custom = join(BROKEN_FOLDERS, reason);
    const { problem, events } = await start(custom);
    expect(problem).toBeInstanceOf(OperatorError);
    expect((problem as OperatorError).message).toBe(((await check(custom)) as OperatorError).message);
    expect(events.filter(({ type }) => type === 'listening')).toEqual([]);
  });

  test('every folder in broken-folders is tested', () => {
    expect(BROKEN.map(([reason]) => reason).sort()).toEqual(readdirSync(BROKEN_FOLDERS).sort());
  });

  // Written by the test, because the formatter reads every YAML file of the project and fails on invalid YAML.
  test.each(['name: [never closed', 'name: a: b', '\tname: a', 'name: "\\q"'])(
    'invalid YAML (%j): one line names the file and the position',
    async yaml => {
      const custom = mkdtempSync(join(tmpdir(), 'dendro-test-'));
      try {
        mkdirSync(join(custom, 'edge.ids'));
        writeFileSync(join(custom, 'edge.ids', 'endpoint.yaml'), yaml);
        const problem = await check(custom);
        expect(problem).toBeInstanceOf(OperatorError);
        const { message } = problem as OperatorError;
        expect(message.startsWith(`${join(custom, 'edge.ids', 'endpoint.yaml')}: `)).toBe(true);
        expect(message).toMatch(/line 1, column \d+/);
        expect(message).not.toContain('\n');
      } finally {
        rmSync(custom, { recursive: true, force: true });
      }
    },
  );

  test('a directory of custom endpoints that does not exist is an error', async () => {
    const custom = join(BROKEN_FOLDERS, 'no-such-folder');
    const problem = await check(custom);
    expect(problem).toBeInstanceOf(OperatorError);
    expect((problem as OperatorError).message).toContain(custom);
  });

  test('after the folder is fixed, the service starts on the same data directory', async () => {
    await start(join(BROKEN_FOLDERS, 'insert'));
    expect(await start(join(import.meta.dirname, 'custom-endpoints'))).toMatchObject({ problem: undefined });
  });

  test('files next to endpoint folders and hidden folders are ignored', async () => {
    const custom = mkdtempSync(join(tmpdir(), 'dendro-test-'));
    try {
      writeFileSync(join(custom, 'README.md'), 'Our endpoints.');
      mkdirSync(`${custom}${sep}.git`);
      expect(await check(custom)).toBeUndefined();
    } finally {
      rmSync(custom, { recursive: true, force: true });
    }
  });
});

test('an endpoint folder can be a symbolic link, and a link without a target is an error', () => {
  const { folder: target, remove } = writeEndpointFolders({ linked: documentedEndpoint() });
  const custom = mkdtempSync(join(tmpdir(), 'dendro-test-'));
  try {
    const load = () => loadCatalog({ builtIn: BUILT_IN, custom }, 'duckdb').endpoints;
    writeFileSync(join(custom, 'README.md'), 'a file is ignored');
    symlinkSync(join(target, 'linked'), join(custom, 'linked'));
    expect(load().filter(({ isShipped }) => !isShipped)).toHaveLength(1);
    symlinkSync(join(target, 'nothing'), join(custom, 'dangling'));
    expect(load).toThrow(`${join(custom, 'dangling', 'endpoint.yaml')}: is missing`);
  } finally {
    remove();
    rmSync(custom, { recursive: true });
  }
});
