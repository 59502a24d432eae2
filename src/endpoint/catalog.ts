// Loads endpoint folders. Throws OperatorError, with one line that names the file and the problem, if a folder is broken: startup
// then fails, and a reload keeps the current endpoints (live-catalog.ts).
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { joinProblems, OperatorError } from '../domain/errors.ts';
import { MAX_SQL_BYTES } from '../domain/limits.ts';
import type { Condition } from '../store/condition.ts';
import type { KindOrAll } from '../store/log-sql.ts';
import type { ParameterRules, RequiredParameters } from '../store/query-parameters.ts';
import type { BoundValues, Column, SavedQuery, Store, StoreName } from '../store/store.ts';
import { describeFileError } from '../system/file-access.ts';
import { findAlertProblem } from './alert-rules.ts';
import { MAX_SAMPLE_ROWS, SAMPLE_COLUMNS } from './compare-records.ts';
import {
  type EndpointDefinition,
  EXPLAIN_TIMES,
  listRangeNames,
  listSelections,
  readDefinition,
  selectKind,
} from './definition.ts';
import { listBoundNames, type Parameter } from './parameter-definition.ts';
import { createSampleValues, readFields, readSearch } from './parameters.ts';
import { fillTemplate, listPlaceholders, PLACEHOLDERS } from './sql-template.ts';
import { readText, readYamlFile } from './yaml-file.ts';

export interface Endpoint {
  readonly definition: EndpointDefinition;
  /** Its SQL is a template (sql-template.ts). */
  readonly query: SavedQuery;
  /**
   * Counts the records that remain after each condition of the query; undefined if the folder has no explain SQL for the store. Its SQL
   * is a template.
   */
  readonly explainQuery: SavedQuery | undefined;
  readonly definitionFile: string;
  readonly sqlFile: string;
  readonly explainFile: string;
  /** True for a built-in endpoint or one of a pack, false for a custom endpoint of the operator. */
  readonly isShipped: boolean;
}

/** Directories that contain endpoint folders. */
export interface EndpointFolders {
  readonly builtIn: string;
  /** One directory for each enabled pack. A pack is a set of endpoints that is part of Dendro. */
  readonly packs?: readonly string[];
  readonly custom: string | undefined;
  /** The receivers that an alert can notify. Undefined: alerts are off, and the names are not checked. */
  readonly receivers?: readonly string[] | undefined;
}

export interface Catalog {
  readonly endpoints: readonly Endpoint[];
  /** Finds an endpoint by UUID (case-insensitive) or by exact name. */
  find(idOrName: string): Endpoint | undefined;
}

/** Loads every endpoint folder. Does not check the SQL: that needs an open store, see checkCatalog(). */
export function loadCatalog(folders: EndpointFolders, store: StoreName): Catalog {
  return createCatalog([...loadEndpoints(folders, store)]);
}

/** Loads one endpoint folder after the other, so that a running server can do something else in between. */
export function* loadEndpoints(
  { builtIn, packs = [], custom, receivers }: EndpointFolders,
  store: StoreName,
): Generator<Endpoint> {
  const shippedFolders = [builtIn, ...packs].flatMap(listEndpointFolders);
  const customFolders = custom === undefined ? [] : listEndpointFolders(custom);
  for (const folder of shippedFolders) yield loadEndpoint(folder, store, { isShipped: true, receivers });
  for (const folder of customFolders) yield loadEndpoint(folder, store, { isShipped: false, receivers });
}

/** Throws OperatorError if two endpoints have the same name or UUID. */
export function createCatalog(endpoints: readonly Endpoint[]): Catalog {
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
export function loadDefinitions({ builtIn, packs = [], custom }: EndpointFolders): EndpointDefinition[] {
  return [builtIn, ...packs, ...(custom === undefined ? [] : [custom])]
    .flatMap(listEndpointFolders)
    .map(folder => loadDefinition(join(folder, DEFINITION_FILE), undefined));
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

/** A query of a request: its template filled for the log kind, the search and the fields that the request selects. */
export interface RequestQuery {
  readonly query: SavedQuery;
  readonly search: Condition | undefined;
  /** Those of the request, and those that the filled template needs. */
  readonly values: BoundValues;
}

/** `values` are those that bindParameters returned. */
export function fillQuery(
  definition: EndpointDefinition,
  template: SavedQuery,
  values: BoundValues,
  store: StoreName,
): RequestQuery {
  const search = readSearch(definition, values);
  const { sql, values: added } = fillTemplate(template.sql, {
    store,
    kind: selectKind(definition, values),
    search,
    fields: readFields(definition, values),
  });
  return { query: { ...template, sql }, search, values: { ...values, ...added } };
}

/**
 * Lets the store validate the SQL of every endpoint; throws one error for all that it rejects. Of the endpoints that are part of Dendro, the
 * embedded store validates none, because it has the tables that their tests have, and ClickHouse validates the SQL of one log kind:
 * the start would take several times as long.
 */
export async function checkCatalog(catalog: Catalog, store: Store, signal?: AbortSignal): Promise<void> {
  const problems: OperatorError[] = [];
  for (const endpoint of catalog.endpoints) {
    signal?.throwIfAborted();
    if (endpoint.isShipped && store.name === 'duckdb') continue;
    const selections = listSelections(endpoint.definition).slice(0, endpoint.isShipped ? 1 : undefined);
    await checkEndpoint(endpoint, store, selections).catch((error: Error) => {
      if (!(error instanceof OperatorError)) throw error;
      problems.push(error);
    });
  }
  if (problems.length > 0) throw joinProblems(problems);
}

export async function checkEndpoint(
  endpoint: Endpoint,
  store: Store,
  selections: readonly KindOrAll[] = listSelections(endpoint.definition),
): Promise<void> {
  const { definition, sqlFile, explainFile } = endpoint;
  const { reads } = definition;
  const pinParameters = listPinParameters(definition);
  const required = [...pinParameters, ...listRequiredParameters(definition)];
  for (const kind of selections) {
    const sample = createSampleValues(
      definition,
      typeof reads === 'string' ? {} : { [reads.parameter]: kind },
    );
    const check = async (template: SavedQuery, requiredParameters: RequiredParameters[], file: string) => {
      const { query, values } = fillQuery(definition, template, sample, store.name);
      await checkQuery(store, query, { sample: values, required: requiredParameters }, file);
    };
    await check(endpoint.query, required, sqlFile);
    if (endpoint.explainQuery !== undefined) await check(endpoint.explainQuery, pinParameters, explainFile);
  }
}

/**
 * The SQL must use every declared parameter, because a forgotten condition would return too many records. Instead of the
 * parameter, it can use a value that depends on it: one that its choices set, one of the values that a cursor binds, or a bound of
 * the time range, such as $range_start. The parameter that selects the log kind is exempt: it selects the table. readSql checks the
 * parameters that have a placeholder.
 */
function listRequiredParameters(definition: EndpointDefinition): RequiredParameters[] {
  const { parameters, reads } = definition;
  return Object.entries(parameters)
    .filter(([name]) => typeof reads === 'string' || name !== reads.parameter)
    .filter(([name, parameter]) => placeholderOf(name, parameter) === undefined)
    .map(([name, parameter]) => ({
      anyOf: [...listBoundNames(name, parameter), ...listRangeNames(definition, name, parameter)],
      reason: `the definition declares the parameter ${name}; use it in the SQL, or remove it from the definition`,
    }));
}

/**
 * What the SQL must use if the endpoint declares `applies_pin`. Without a parameter `project`: $pinned_projects, the list of the
 * token's projects. With a parameter `project`, a pinned token may name only its own projects (run-endpoint.ts), so a condition
 * on $project applies the pin. If it is a pattern, it can match other projects too, so the SQL must use $pinned_project, the
 * exact name.
 */
function listPinParameters({ applies_pin, parameters }: EndpointDefinition): RequiredParameters[] {
  if (!applies_pin) return [];
  const reason = 'applies_pin is true, so the SQL must return only records of the projects of a pinned token';
  const project = parameters['project'];
  if (project === undefined) return [{ anyOf: ['pinned_projects'], reason }];
  const isExact = project.type === 'text' || project.type === 'choice';
  return [{ anyOf: isExact ? ['project', 'pinned_project'] : ['pinned_project'], reason }];
}

async function checkQuery(
  store: Store,
  query: SavedQuery,
  rules: ParameterRules,
  sqlFile: string,
): Promise<void> {
  const problem = await store.validateQuery(query, rules);
  if (problem !== undefined) throw new OperatorError(`${sqlFile}: ${problem}`);
}

const DEFINITION_FILE = 'endpoint.yaml';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function findByUuid(byKey: ReadonlyMap<string, Endpoint>, text: string): Endpoint | undefined {
  return UUID.test(text) ? byKey.get(text.toLowerCase()) : undefined;
}

/** Follows symbolic links. A link without a target is listed: it is a broken folder, not a file to ignore. */
function listEndpointFolders(parent: string): string[] {
  try {
    const names = readdirSync(parent);
    if (names.includes(DEFINITION_FILE))
      throw new OperatorError(
        `${join(parent, DEFINITION_FILE)}: this is the folder of one endpoint; name the directory that contains such folders`,
      );
    return names
      .filter(name => !name.startsWith('.'))
      .map(name => join(parent, name))
      .filter(path => statSync(path, { throwIfNoEntry: false })?.isDirectory() !== false)
      .sort();
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `cannot read the endpoint folders in ${parent}: ${describeFileError(parent, error as NodeJS.ErrnoException)}`,
    );
  }
}

function loadEndpoint(
  folder: string,
  store: StoreName,
  { isShipped, receivers }: Pick<Endpoint, 'isShipped'> & Pick<EndpointFolders, 'receivers'>,
): Endpoint {
  const definitionFile = join(folder, DEFINITION_FILE);
  const definition = loadDefinition(definitionFile, receivers);
  const sqlFile = join(folder, `${store}.sql`);
  const explainFile = join(folder, `explain.${store}.sql`);
  return {
    definition,
    query: {
      sql: readSql(sqlFile, definition, true),
      ...(definition.compares
        ? { columns: SAMPLE_COLUMNS, maxRows: MAX_SAMPLE_ROWS }
        : { columns: listColumns(definition), maxRows: definition.max_rows }),
    },
    explainQuery: existsSync(explainFile) ? loadExplainQuery(explainFile, definition) : undefined,
    definitionFile,
    sqlFile,
    explainFile,
    isShipped,
  };
}

export function listColumns({ columns }: EndpointDefinition): Column[] {
  return Object.entries(columns).map(([name, { type }]) => ({ name, type }));
}

function isPlaceholder(name: string): boolean {
  return name === 'search' || PLACEHOLDERS.includes(name);
}

/** The placeholder of a parameter that is not bound as a value. */
function placeholderOf(name: string, { type }: Parameter): string | undefined {
  if (type === 'search') return 'search';
  return type === 'field' ? name : undefined;
}

function loadExplainQuery(file: string, definition: EndpointDefinition): SavedQuery {
  const { explain: conditions } = definition;
  if (conditions === undefined)
    throw new OperatorError(`${file}: ${DEFINITION_FILE} has no key explain, the list of the conditions`);
  const columns: Column[] = [
    ...EXPLAIN_TIMES.map(name => ({ name, type: 'unix_microseconds' as const })),
    ...conditions.map(name => ({ name, type: 'integer' as const })),
  ];
  return { sql: readSql(file, definition, false), columns, maxRows: 1 };
}

/** `usesAll`: the SQL must use the placeholder of every parameter that has one, because a forgotten one would be ignored. */
function readSql(file: string, { parameters }: EndpointDefinition, usesAll: boolean): string {
  const sql = readText(file, MAX_SQL_BYTES);
  const used = listPlaceholders(sql);
  const ofParameters = Object.entries(parameters).flatMap(([name, parameter]) => {
    const placeholder = placeholderOf(name, parameter);
    return placeholder === undefined ? [] : [{ name, placeholder }];
  });
  const ambiguous = ofParameters.find(({ name, placeholder }) => name === placeholder && isPlaceholder(name));
  if (ambiguous !== undefined)
    throw new OperatorError(`${file}: a parameter of type field cannot be called ${ambiguous.name}`);
  const known = [...PLACEHOLDERS, ...ofParameters.map(({ placeholder }) => placeholder)];
  const unknown = used.find(name => !known.includes(name));
  if (unknown !== undefined)
    throw new OperatorError(`${file}: there is no placeholder {{${unknown}}}; allowed: ${known.join(', ')}`);
  const unused = ofParameters.find(({ placeholder }) => !used.includes(placeholder));
  if (usesAll && unused !== undefined)
    throw new OperatorError(
      `${file}: does not use {{${unused.placeholder}}}: the definition declares the parameter ${unused.name}; use it in the SQL, or remove it from the definition`,
    );
  return sql;
}

function loadDefinition(file: string, receivers: readonly string[] | undefined): EndpointDefinition {
  return readYamlFile(file, content => {
    const definition = readDefinition(content);
    if ('problem' in definition) return definition;
    const problem = findAlertProblem(definition, receivers);
    return problem === undefined ? definition : { problem };
  });
}
