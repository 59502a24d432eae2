import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from '../../src/app.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import { checkEndpoint, loadCatalog } from '../../src/endpoint/catalog.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { testConfig, testStoreOptions } from '../support/app.ts';
import {
  BUILT_IN,
  documentedEndpoint,
  type EndpointFiles,
  EXPLORE,
  writeEndpointFolders,
} from '../support/custom-endpoints.ts';
import { useDirectory } from '../support/hooks.ts';

const PROJECT = { type: 'text', required: true, description: 'Project reference.' };
const DEFINITION = {
  id: '6f9f1c5e-3b1d-4f0e-9c55-000000000006',
  name: 'edge.ids',
  reads: 'edge',
  description: 'Ids of the edge records of one project.',
  parameters: { project: PROJECT },
  columns: {
    id: { type: 'text', description: 'Identifier of the record.' },
    timestamp: { type: 'unix_microseconds', description: 'Time of the record.' },
  },
  max_rows: 10,
  cache: 'none',
};
const SQL = 'select id, timestamp from edge_logs where project = $project';
const PINNED_SQL = `select id, timestamp from edge_logs
  where (len($pinned_projects) = 0 or list_contains($pinned_projects, project))`;
const EXPLAIN_SQL = `select null::timestamp as window_start, null::timestamp as window_end, max(timestamp) as newest,
  min(timestamp) as oldest, count(*) as project from edge_logs`;

/** JSON is YAML. Each key is in a line of its own. */
const toYaml = (definition: object) => JSON.stringify({ ...DEFINITION, ...definition }, null, 1);
const withParameter = (name: string, parameter: object) => ({
  parameters: { project: PROJECT, [name]: { description: 'Any text.', ...parameter } },
});
const withArea = (area: object) => withParameter('area', { type: 'choice', ...area });
const TIERS = { FREE: { days: 1 }, PRO: { days: 7 } };

/** The message says where the problem is: `path` is a key, and the line is that of the key or of its nearest parent in the file. */
const BROKEN_DEFINITIONS: readonly [definition: object, path: string, message: string][] = [
  [{ cache: undefined }, 'cache', 'is missing at line 1'],
  [{ sandboxing: false }, 'sandboxing', 'unknown key at line 25'],
  [{ id: 'one' }, 'id', 'must be a UUID at line 2'],
  [{ name: 'Edge Ids' }, 'name', 'must be dotted lower-case words'],
  [{ reads: 'edges' }, 'reads', 'must be a log kind (edge, '],
  [{ columns: {} }, 'columns', 'needs at least one column'],
  [
    { columns: { id: { type: 'uuid', description: 'Id.' } } },
    'columns.id.type',
    'must be ("text" | "integer"',
  ],
  [{ max_rows: 1001 }, 'max_rows', 'must be <=1000'],
  [{ max_rows: 0 }, 'max_rows', 'must be >=1'],
  [{ max_rows: 1.5 }, 'max_rows', 'must be a whole number'],
  [{ cache: { lifetime_seconds: 0, warming_seconds: 1 } }, 'cache.lifetime_seconds', 'must be >=1'],
  [{ explain: [] }, 'explain', 'needs at least one condition'],
  [withParameter('Project-Ref', PROJECT), 'parameters.Project-Ref', 'must be lower-case letters'],
  [withParameter('size', { type: 'float' }), 'parameters.size.type', 'must be ('],
  [
    withParameter('size', { type: 'text', default: 'a' }),
    'parameters.size.default',
    'unknown key at line 15',
  ],
  ...['now', 'timestamps', 'format'].map(
    name =>
      [withParameter(name, { type: 'text' }), `parameters.${name}`, `the name ${name} is reserved`] as [
        object,
        string,
        string,
      ],
  ),
  [
    withParameter('size', { type: 'integer', min: 2, max: 1 }),
    'parameters.size',
    'min must not be larger than max',
  ],
  [
    withParameter('size', { type: 'integer', max: 1, default: 2 }),
    'parameters.size.default',
    'must be a number from min to max',
  ],
  [
    withParameter('page', { type: 'cursor' }),
    'parameters',
    'a parameter of type cursor needs the key range with start, end and days',
  ],
  [withArea({ choices: {} }), 'parameters.area', 'needs at least one choice'],
  [
    withArea({ choices: { rest: {} }, fallback: 'auth' }),
    'parameters.area.fallback',
    'must be one of the choices',
  ],
  [
    withArea({ choices: { rest: {} }, default: 'toString' }),
    'parameters.area.default',
    'must be one of the choices',
  ],
  [
    withArea({ choices: { rest: {} }, default: 'rest', fallback: 'rest' }),
    'parameters.area',
    'fallback applies to an absent parameter too',
  ],
  [
    withArea({ choices: { rest: {} }, default: 'rest', accepts_any: true }),
    'parameters.area.accepts_any',
    'needs a fallback',
  ],
  [
    withArea({ choices: { 1: {}, 2: {} }, tiers: true }),
    'parameters.area',
    'a tier cannot be named by a number',
  ],
  [
    withArea({ choices: { a: { x: 1 }, b: { y: 1 } } }),
    'parameters.area',
    'every choice must have values of the same',
  ],
  [
    withArea({ choices: { a: { x: 1 }, b: { x: 'b' } } }),
    'parameters.area',
    'every choice must have values of the same',
  ],
  [
    withArea({ choices: { a: { project: 1 } } }),
    'parameters.area',
    'the name project is reserved or already used',
  ],
  [
    withArea({ choices: { a: { level: 2 ** 60 } } }),
    'parameters.area.choices.a.level',
    'must be a whole number from -9007199254740991 to 9007199254740991 at line 17',
  ],
  [
    { ...withArea({ choices: { edge: {} } }), reads: { parameter: 'area' } },
    'reads',
    'area must be required, or have a default or a fallback at line 4',
  ],
  [
    { ...withArea({ choices: TIERS }), range: { days: 'days' } },
    'range',
    'area must be required, or have a default or a fallback',
  ],
  [{ range: { start: 'project' } }, 'range', 'project is not a parameter of type timestamp'],
  [
    { retention: { start: 'project', days: 'days' } },
    'retention',
    'is part of another key now: range: { start: NAME, days: NAME }',
  ],
];

const BROKEN_YAML: readonly [yaml: string, message: RegExp][] = [
  ['name: [never closed', /line 1, column \d+/],
  ['name: a: b', /line 1, column \d+/],
  ['\tname: a', /line 1, column \d+/],
  ['name: "\\q"', /line 1, column \d+/],
  ['name: a\nid: b\nname: c', /Map keys must be unique at line 3, column 1/],
  ['name: a\n---\nname: b', /multiple documents.* at line 2/],
  ['name: *nothing', /Unresolved alias.*nothing/],
  [
    `a: &a [${'x,'.repeat(20)}]\nb: &b [${'*a,'.repeat(20)}]\nc: [${'*b,'.repeat(20)}]`,
    /Excessive alias count/,
  ],
  ['', /is empty/],
];

const notASelect = /is not a SELECT/;
const noPin =
  /does not use \$pinned_projects: applies_pin is true, so the SQL must return only records of the projects/;
const pinned = { applies_pin: true, parameters: {} };

const BROKEN_SQL: readonly [sql: string, message: RegExp, definition?: object][] = [
  // contract.test.ts and duckdb-safety.test.ts have every kind of statement and function.
  ['\nselekt id form edge_logs', /at line 2: .*syntax error at or near "selekt"/],
  ['install httpfs', notASelect],
  [`${SQL} and id = $owner`, /uses \$owner, which is not declared; declared: \$project, \$now/],
  ['select id, timestamp from edge_logs where project = ?', /uses \$1, which is not declared/],
  [
    'select id, timestamp from edge_logs',
    /does not use \$project: the definition declares the parameter project; use it in the SQL, or remove it/,
  ],
  [
    SQL,
    /uses neither \$area nor \$seconds: the definition declares the parameter area/,
    withArea({ choices: { hour: { seconds: 3600 } } }),
  ],
  ['select id, timestamp from edge_logs', noPin, pinned],
  [
    'select id, timestamp from edge_logs where ($pinned_project is null or project = $pinned_project)',
    /uses \$pinned_project, which is not declared; declared: \$now, \$pinned_projects/,
    pinned,
  ],
  [
    'select id, timestamp from edge_logs where regexp_matches(url, $project)',
    /does not use \$pinned_project: applies_pin is true/,
    { applies_pin: true, parameters: { project: { ...PROJECT, type: 'pattern' } } },
  ],
  [
    'select id as record, timestamp from edge_logs where project = $project',
    /returns the columns record, timestamp, but id, timestamp are declared/,
  ],
  [
    'select id, id as timestamp from edge_logs where project = $project',
    /returns timestamp as VARCHAR, which is not a valid type for unix_microseconds/,
  ],
];

const BROKEN_EXPLAIN_SQL: readonly [files: Partial<EndpointFiles>, message: RegExp][] = [
  [{ yaml: toYaml({ ...pinned, explain: ['project'] }), sql: PINNED_SQL, explain: EXPLAIN_SQL }, noPin],
  [{ explain: EXPLAIN_SQL }, /endpoint\.yaml has no key explain, the list of the conditions/],
  [
    { yaml: toYaml({ explain: ['project', 'window'] }), explain: EXPLAIN_SQL },
    /but window_start, window_end, newest, oldest, project, window are declared/,
  ],
  [{ yaml: toYaml({ explain: ['project'] }), explain: 'delete from edge_logs' }, notASelect],
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

  test('accepts the SQL of every endpoint that is part of Dendro, for every log kind', async () => {
    const { endpoints } = loadCatalog({ builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined }, 'duckdb');
    for (const endpoint of endpoints) await checkEndpoint(endpoint, store);
    expect(endpoints.length).toBeGreaterThan(7);
  });

  const custom = useDirectory();
  const writeFolder = (files: Partial<EndpointFiles>) =>
    writeEndpointFolders({ ids: { yaml: toYaml({}), sql: SQL, ...files } }, custom);

  /** Loads and checks the folder as a start of the service does. Returns the message, without the directory. */
  const findProblem = async (files: Partial<EndpointFiles>): Promise<string> => {
    writeFolder(files);
    try {
      const { endpoints } = loadCatalog({ builtIn: BUILT_IN, custom }, 'duckdb');
      for (const endpoint of endpoints.filter(({ isShipped }) => !isShipped))
        await checkEndpoint(endpoint, store);
      return '';
    } catch (error) {
      expect(error).toBeInstanceOf(OperatorError);
      const { message } = error as OperatorError;
      expect(message).not.toContain('\n');
      expect(message.startsWith(join(custom, 'ids', '/'))).toBe(true);
      return message.slice(join(custom, 'ids', '/').length);
    }
  };

  const start = async (files: Partial<EndpointFiles>) => {
    writeFolder(files);
    const config = testConfig(join(dataDirectory, 'started'));
    const events: Event[] = [];
    const endpointFolders = { ...config.endpointFolders, custom };
    try {
      const app = await startApp({ ...config, endpointFolders }, event => events.push(event));
      await app.close();
      return { problem: undefined, events };
    } catch (problem) {
      return { problem, events };
    }
  };

  test.each(BROKEN_DEFINITIONS)(
    'definition with %j: one line names the file, %s and the problem',
    async (broken, path, message) => {
      expect(await findProblem({ yaml: toYaml(broken) })).toContain(`endpoint.yaml: ${path}: ${message}`);
    },
  );

  test.each(BROKEN_YAML)(
    'invalid YAML %j: one line names the file and the position',
    async (yaml, message) => {
      expect(await findProblem({ yaml })).toMatch(new RegExp(`^endpoint\\.yaml: .*${message.source}`));
    },
  );

  test.each(BROKEN_SQL)(
    'SQL %j: one line names the file and the problem',
    async (sql, message, definition = {}) => {
      expect(await findProblem({ yaml: toYaml(definition), sql })).toMatch(
        new RegExp(`^duckdb\\.sql: .*(?:${message.source})`, message.flags),
      );
    },
  );

  test.each(BROKEN_EXPLAIN_SQL)(
    'explain SQL %j: one line names the file and the problem',
    async (files, message) => {
      expect(await findProblem(files)).toMatch(
        new RegExp(`^explain\\.duckdb\\.sql: .*(?:${message.source})`),
      );
    },
  );

  test('a name or an id of a built-in endpoint is an error that names both files', async () => {
    const used = /^endpoint\.yaml: (logs\.all|36d4086c-\S+) is already used by .*endpoints.logs\.all/;
    expect(await findProblem({ yaml: toYaml({ name: 'logs.all' }) })).toMatch(used);
    expect(await findProblem({ yaml: toYaml({ id: '36d4086c-7022-4186-9a0f-e33ec7d730da' }) })).toMatch(used);
  });

  test('a missing definition or SQL file, one that is not a file, and a missing directory, are errors that name it', () => {
    const load = (directory: string) => () => loadCatalog({ builtIn: BUILT_IN, custom: directory }, 'duckdb');
    // Files next to endpoint folders and hidden folders are ignored.
    writeFileSync(join(custom, 'README.md'), 'Our endpoints.');
    mkdirSync(join(custom, '.git'));
    expect(load(custom)).not.toThrow();
    mkdirSync(join(custom, 'ids'));
    expect(load(custom)).toThrow(`${join(custom, 'ids', 'endpoint.yaml')}: is missing`);
    writeFileSync(join(custom, 'ids', 'endpoint.yaml'), toYaml({}));
    expect(load(custom)).toThrow(`${join(custom, 'ids', 'duckdb.sql')}: is missing`);
    mkdirSync(join(custom, 'ids', 'duckdb.sql'));
    expect(load(custom)).toThrow(`${join(custom, 'ids', 'duckdb.sql')}: is not a regular file`);
    expect(load(join(custom, 'nothing'))).toThrow(join(custom, 'nothing'));
  });

  test('an endpoint folder can be a symbolic link, and a link without a target is an error', () => {
    const target = join(dataDirectory, 'target');
    mkdirSync(target);
    writeEndpointFolders({ linked: documentedEndpoint() }, target);
    const load = () => loadCatalog({ builtIn: BUILT_IN, custom }, 'duckdb').endpoints;
    symlinkSync(join(target, 'linked'), join(custom, 'linked'));
    expect(load().filter(({ isShipped }) => !isShipped)).toHaveLength(1);
    symlinkSync(join(target, 'nothing'), join(custom, 'dangling'));
    expect(load).toThrow(`${join(custom, 'dangling', 'endpoint.yaml')}: is missing`);
  });

  test('startup fails before the service listens; after the folder is fixed, it starts on the same data', async () => {
    for (const files of [{ yaml: toYaml({ cache: undefined }) }, { sql: 'install httpfs' }]) {
      const { problem, events } = await start(files);
      expect(problem).toBeInstanceOf(OperatorError);
      expect(events.filter(({ type }) => type === 'listening')).toEqual([]);
    }
    expect(await start({})).toMatchObject({ problem: undefined });
  });
});
