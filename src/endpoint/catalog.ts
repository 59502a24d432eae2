// Loads endpoint folders. If a folder is broken, startup fails with one line that names the file and the problem.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load as parseYaml, YAMLException } from 'js-yaml';
import { OperatorError } from '../domain/errors.ts';
import type { BoundValues, Column, SavedQuery, Store, StoreName } from '../store/store.ts';
import { describeFileError } from '../system/file-access.ts';
import { type EndpointDefinition, EXPLAIN_TIMES, hasProject, readDefinition } from './definition.ts';
import { createSampleValues } from './parameters.ts';

export interface Endpoint {
  readonly definition: EndpointDefinition;
  readonly query: SavedQuery;
  /** Counts the records that remain after each condition of the query; undefined if the folder has no explain SQL for the store. */
  readonly explainQuery: SavedQuery | undefined;
  readonly definitionFile: string;
  readonly sqlFile: string;
  readonly explainFile: string;
  /** True for an endpoint that is part of Dendro, false for a custom endpoint of the operator. */
  readonly builtIn: boolean;
}

/** Directories that contain endpoint folders. */
export interface EndpointFolders {
  readonly builtIn: string;
  readonly custom: string | undefined;
}

export interface Catalog {
  readonly endpoints: readonly Endpoint[];
  /** Finds an endpoint by UUID (case-insensitive) or by exact name. */
  find(idOrName: string): Endpoint | undefined;
}

/** Loads every endpoint folder. Does not check the SQL: that needs an open store, see checkCatalog(). */
export function loadCatalog({ builtIn, custom }: EndpointFolders, store: StoreName): Catalog {
  const endpoints = [
    ...listEndpointFolders(builtIn).map(folder => loadEndpoint(folder, store, true)),
    ...(custom === undefined ? [] : listEndpointFolders(custom)).map(folder =>
      loadEndpoint(folder, store, false),
    ),
  ];
  const byKey = new Map<string, Endpoint>();
  for (const endpoint of endpoints) {
    for (const key of [endpoint.definition.id, endpoint.definition.name]) {
      const other = byKey.get(key);
      if (other !== undefined)
        throw new OperatorError(
          `${endpoint.definitionFile}: ${key} is already used by ${other.definitionFile}`,
        );
      byKey.set(key, endpoint);
    }
  }
  return { endpoints, find: idOrName => byKey.get(idOrName) ?? findByUuid(byKey, idOrName) };
}

/** Loads every definition without its SQL, which depends on the store. */
export function loadDefinitions({ builtIn, custom }: EndpointFolders): EndpointDefinition[] {
  return [builtIn, ...(custom === undefined ? [] : [custom])]
    .flatMap(listEndpointFolders)
    .map(folder => loadDefinition(join(folder, DEFINITION_FILE)));
}

/** The choices of every parameter with `tiers: true`, each once, in the order of the definitions. */
export function listTiers(definitions: readonly EndpointDefinition[]): string[] {
  const tiers = new Set<string>();
  for (const { parameters } of definitions)
    for (const parameter of Object.values(parameters))
      if (parameter.type === 'choice' && parameter.tiers)
        for (const tier of Object.keys(parameter.choices)) tiers.add(tier);
  return [...tiers];
}

/** Lets the store validate the SQL of every endpoint; throws for the first that it rejects. */
export async function checkCatalog(catalog: Catalog, store: Store): Promise<void> {
  for (const { definition, query, sqlFile, explainQuery, explainFile } of catalog.endpoints) {
    const sample = createSampleValues(definition);
    await checkQuery(store, query, sample, sqlFile);
    if (explainQuery !== undefined) await checkQuery(store, explainQuery, sample, explainFile);
  }
}

async function checkQuery(
  store: Store,
  query: SavedQuery,
  sample: BoundValues,
  sqlFile: string,
): Promise<void> {
  const problem = await store.validateQuery(query, sample);
  if (problem !== undefined) throw new OperatorError(`${sqlFile}: ${problem}`);
}

const DEFINITION_FILE = 'endpoint.yaml';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function findByUuid(byKey: ReadonlyMap<string, Endpoint>, text: string): Endpoint | undefined {
  return UUID.test(text) ? byKey.get(text.toLowerCase()) : undefined;
}

function listEndpointFolders(parent: string): string[] {
  try {
    return readdirSync(parent, { withFileTypes: true })
      .filter(entry => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(entry => join(parent, entry.name))
      .sort();
  } catch (error) {
    throw new OperatorError(
      `cannot read the endpoint folders in ${parent}: ${describeFileError(parent, error as NodeJS.ErrnoException)}`,
    );
  }
}

function loadEndpoint(folder: string, store: StoreName, builtIn: boolean): Endpoint {
  const definitionFile = join(folder, DEFINITION_FILE);
  const definition = loadDefinition(definitionFile);
  const sqlFile = join(folder, `${store}.sql`);
  const explainFile = join(folder, `explain.${store}.sql`);
  const columns = Object.entries(definition.columns).map(([name, { type }]) => ({ name, type }));
  return {
    definition,
    definitionFile,
    sqlFile,
    explainFile,
    builtIn,
    query: { sql: readSql(sqlFile, definition), columns, maxRows: definition.max_rows },
    explainQuery: existsSync(explainFile) ? loadExplainQuery(explainFile, definition) : undefined,
  };
}

function loadExplainQuery(file: string, definition: EndpointDefinition): SavedQuery {
  const { explain: conditions } = definition;
  if (conditions === undefined)
    throw new OperatorError(`${file}: ${DEFINITION_FILE} has no key explain, the list of the conditions`);
  const columns: Column[] = [
    ...EXPLAIN_TIMES.map(name => ({ name, type: 'unix_microseconds' as const })),
    ...conditions.map(name => ({ name, type: 'integer' as const })),
  ];
  return { sql: readSql(file, definition), columns, maxRows: 1 };
}

function readSql(file: string, definition: EndpointDefinition): string {
  const sql = readText(file);
  // With a parameter `project`, a pinned token may name only its own projects (run-endpoint.ts), and the SQL uses $project or
  // $pinned_project. Without one, the SQL must use $pinned_projects.
  if (definition.applies_pin && !hasProject(definition) && !/\bpinned_projects\b/.test(withoutComments(sql)))
    throw new OperatorError(
      `${file}: applies_pin is true and there is no parameter project, so the SQL must use pinned_projects`,
    );
  return sql;
}

function loadDefinition(file: string): EndpointDefinition {
  const definition = readDefinition(parseFile(file));
  if (!('problem' in definition)) return definition;
  const { path, message } = definition.problem;
  throw new OperatorError(`${file}: ${path.length === 0 ? '' : `${path.join('.')}: `}${message}`);
}

function parseFile(file: string): unknown {
  try {
    return parseYaml(readText(file));
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { reason, mark } = error;
    const position = mark === undefined ? '' : ` at line ${mark.line + 1}, column ${mark.column + 1}`;
    throw new OperatorError(`${file}: ${reason}${position}`);
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const systemError = error as NodeJS.ErrnoException;
    throw new OperatorError(
      systemError.code === 'ENOENT'
        ? `${file}: is missing`
        : `${file}: cannot be read: ${describeFileError(file, systemError)}`,
    );
  }
}

/** Also removes what looks like a comment in a string, which does not matter to the search for a parameter. */
function withoutComments(sql: string): string {
  return sql.replace(/--.*$|\/\*[\s\S]*?\*\//gm, '');
}
