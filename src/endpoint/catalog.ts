// Loads endpoint folders and refuses to start with a broken one: the line names the file and the fault.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load as parseYaml, YAMLException } from 'js-yaml';
import { OperatorError } from '../domain/errors.ts';
import type { SavedQuery, Store, StoreName } from '../store/store.ts';
import { type EndpointDefinition, readDefinition } from './definition.ts';
import { sampleValues } from './parameters.ts';

export interface Endpoint {
  readonly definition: EndpointDefinition;
  readonly query: SavedQuery;
  readonly definitionFile: string;
  readonly sqlFile: string;
  /** Comes with the program; the others are the operator's own. */
  readonly builtIn: boolean;
}

export interface EndpointFolders {
  readonly builtIn: string;
  readonly custom: string | undefined;
}

export interface Catalog {
  readonly endpoints: readonly Endpoint[];
  /** By UUID in any letter case, or by exact name. */
  find(idOrName: string): Endpoint | undefined;
}

/** Reads every folder below the given ones. The SQL is not checked yet: that takes an open store. */
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
      const twin = byKey.get(key);
      if (twin !== undefined)
        throw new OperatorError(`${endpoint.definitionFile}: ${key} is taken by ${twin.definitionFile}`);
      byKey.set(key, endpoint);
    }
  }
  return { endpoints, find: idOrName => byKey.get(idOrName) ?? findByUuid(byKey, idOrName) };
}

/** Asks the store about the SQL of every endpoint; throws for the first that it refuses. */
export async function checkCatalog(catalog: Catalog, store: Store): Promise<void> {
  for (const { definition, query, sqlFile } of catalog.endpoints) {
    const fault = await store.validateQuery(query, sampleValues(definition));
    if (fault !== undefined) throw new OperatorError(`${sqlFile}: ${fault}`);
  }
}

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
    throw new OperatorError(`cannot read the endpoints in ${parent}: ${(error as Error).message}`);
  }
}

function loadEndpoint(folder: string, store: StoreName, builtIn: boolean): Endpoint {
  const definitionFile = join(folder, 'endpoint.yaml');
  const definition = loadDefinition(definitionFile);
  const sqlFile = join(folder, `${store}.sql`);
  const columns = Object.entries(definition.columns).map(([name, { type }]) => ({ name, type }));
  return {
    definition,
    definitionFile,
    sqlFile,
    builtIn,
    query: { sql: readText(sqlFile), columns, maxRows: definition.max_rows },
  };
}

function loadDefinition(file: string): EndpointDefinition {
  const definition = readDefinition(parse(file));
  if (!('fault' in definition)) return definition;
  const { path, message } = definition.fault;
  throw new OperatorError(`${file}: ${path.length === 0 ? '' : `${path.join('.')}: `}${message}`);
}

function parse(file: string): unknown {
  try {
    return parseYaml(readText(file));
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { reason, mark } = error;
    const place = mark === undefined ? '' : ` at line ${mark.line + 1}, column ${mark.column + 1}`;
    throw new OperatorError(`${file}: ${reason}${place}`);
  }
}

function readText(file: string): string {
  if (!existsSync(file)) throw new OperatorError(`${file}: is missing`);
  return readFileSync(file, 'utf8');
}
