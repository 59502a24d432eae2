// dendro query: runs an endpoint on a store (--data, --store), or with --url on a running server, and prints its rows. With
// --explain, it prints how many records remain after each condition of the query instead.

import { type Invocation, nameOf, readEndpointFolders, readOneOf, readStoreOptions } from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { DendroError, OperatorError, UsageError } from '../domain/errors.ts';
import { checkCatalog, type Endpoint, loadCatalog } from '../endpoint/catalog.ts';
import { encodeRows, formatCells, type ResultFormat } from '../endpoint/encode-rows.ts';
import { type Explanation, explainEndpoint } from '../endpoint/explain.ts';
import { readIsoTimestamps } from '../endpoint/parameters.ts';
import { runEndpoint } from '../endpoint/run-endpoint.ts';
import { type ValidatedRequest, validateParameters } from '../endpoint/validated-requests.ts';
import { replaySpool } from '../intake/applier.ts';
import { isText, parseExactJson, stringifyExactJson } from '../logs/exact-json.ts';
import { logTo } from '../observe/log.ts';
import { storeNameOf } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { formatExplanation } from './explanation.ts';
import { openLoggedStore } from './open-logged-store.ts';
import { createResponseError, type RunningServer, readRunningServer } from './running-server.ts';
import { type RetryPolicy, type ServerResponse, sendRequest } from './send-request.ts';
import { checkListener, listEndpoints } from './server-catalog.ts';
import { formatTable } from './table.ts';
import { escapeForTerminal, escapeLinesForTerminal } from './terminal.ts';

export async function query(invocation: Invocation): Promise<void> {
  const [name, ...others] = invocation.positionals;
  if (name === undefined || others.length > 0)
    throw new UsageError('name exactly one endpoint, such as: dendro query logs.all --project abc');
  const parameters = readParameters(invocation);
  const format = readFormat(invocation);
  const server = readRunningServer(invocation);
  const pendingOutput = invocation.isOn('explain')
    ? explain(invocation, server, name, parameters, format)
    : server === undefined
      ? queryStore(invocation, name, parameters, format)
      : queryServer(server, name, parameters, format);
  const output = await pendingOutput.catch((error: unknown) => {
    // A wrong parameter is wrong usage, which has an exit code of its own (main.ts).
    throw error instanceof DendroError && error.param !== undefined ? new UsageError(error.message) : error;
  });
  // Only a terminal gets escaped text. A file or another program gets the output unchanged.
  process.stdout.write(process.stdout.isTTY ? escapeLinesForTerminal(output.toString()) : output);
  if (output.length > 0 && output.at(-1) !== LINE_FEED) process.stdout.write('\n');
}

const LINE_FEED = 0x0a;

function readParameters(invocation: Invocation): URLSearchParams {
  const parameters = new URLSearchParams();
  const project = invocation.text('project');
  if (project !== undefined) parameters.append('project', project);
  for (const pair of invocation.many('param')) {
    const separator = pair.indexOf('=');
    if (separator < 1) throw new UsageError(`${nameOf(invocation, 'param')} ${pair} is not NAME=VALUE`);
    parameters.append(pair.slice(0, separator), pair.slice(separator + 1));
  }
  if (parameters.has('format'))
    throw new UsageError('format is not a parameter here; use --json, --csv or --csv-raw');
  return parameters;
}

/** Undefined means a table. */
function readFormat(invocation: Invocation): ResultFormat | undefined {
  return readOneOf(invocation, ['json', 'csv', 'csv-raw']);
}

function queryStore(
  invocation: Invocation,
  name: string,
  parameters: URLSearchParams,
  format: ResultFormat | undefined,
): Promise<Buffer> {
  return useStore(invocation, name, parameters, async (store, endpoint, validated) => {
    const timeLimitMs = readStoreOptions(invocation).queryTimeoutSeconds * 1000;
    const { result } = await runEndpoint({ store, clock: systemClock, timeLimitMs }, endpoint, validated);
    reportClipped(result.notes.clipped.join(', '), result.nextCursor);
    const { rows } = result;
    const { columns } = endpoint.query;
    const isoTimestamps = readIsoTimestamps(parameters);
    if (format !== undefined) return (await encodeRows(columns, rows, { format, isoTimestamps })).body;
    const table = formatTable(
      columns.map(column => column.name),
      rows.map(row => formatCells(columns, row, true)),
      column => ['integer', 'number'].includes(columns[column]?.type ?? ''),
    );
    return Buffer.from(table);
  });
}

/** Finds the endpoint, validates the parameters and opens the store. Passes all three to `use`, then closes the store. */
async function useStore<T>(
  invocation: Invocation,
  name: string,
  parameters: URLSearchParams,
  use: (store: Store, endpoint: Endpoint, validated: ValidatedRequest) => Promise<T>,
): Promise<T> {
  const options = readStoreOptions(invocation);
  const catalog = loadCatalog(readEndpointFolders(invocation), storeNameOf(options));
  const endpoint = catalog.find(name);
  if (endpoint === undefined)
    throw new UsageError(
      `there is no endpoint ${name}; ${suggest(
        name,
        catalog.endpoints.map(e => e.definition.name),
        'available',
      )}`,
    );
  const { definition } = endpoint;
  checkParameterNames(definition.name, Object.keys(definition.parameters), parameters);
  readIsoTimestamps(parameters); // throws for a wrong value
  const validated = validateParameters(definition, parameters);
  const store = await openLoggedStore(options);
  try {
    await checkCatalog(catalog, store);
    await replaySpool(options.dataDirectory, store, logTo(process.stdout, process.stderr));
    return await use(store, endpoint, validated);
  } finally {
    await store.close();
  }
}

/**
 * Throws a UsageError for a parameter that the endpoint does not have. The API ignores such a parameter; in a command it is
 * probably a typo. Every endpoint has `timestamps`, which no definition declares.
 */
function checkParameterNames(endpoint: string, known: readonly string[], parameters: URLSearchParams): void {
  for (const name of parameters.keys())
    if (!known.includes(name) && name !== 'timestamps')
      throw new UsageError(
        `endpoint ${endpoint} has no parameter ${name}; ${suggest(name, known, 'its parameters')}`,
      );
}

/** Someone waits for the rows, so a server that does not exist is reported at once. */
const RETRY_POLICY: RetryPolicy = { maxAttempts: 5, retryUnreachable: false };

async function queryServer(
  server: RunningServer,
  name: string,
  parameters: URLSearchParams,
  format: ResultFormat | undefined,
): Promise<Buffer> {
  const contentType = format === 'csv' || format === 'csv-raw' ? 'text/csv' : 'application/json';
  const sentParameters = new URLSearchParams(parameters);
  if (format === 'csv-raw') sentParameters.append('format', format); // Accept cannot select it
  // A table is for people, who can read ISO 8601.
  if (format === undefined && !sentParameters.has('timestamps')) sentParameters.append('timestamps', 'iso');
  const path = `/api/endpoints/query/${encodeURIComponent(name)}?${sentParameters}`;
  const { headers, body } = await getFromServer(server, path, contentType, { name, parameters });
  reportClipped(headers.get('dendro-clipped') ?? '', headers.get('dendro-next-cursor') ?? undefined);
  if (format !== undefined) return body;
  const { result } = parseExactJson(body.toString()) as { result: Record<string, unknown>[] };
  const columns = Object.keys(result[0] ?? {});
  const table = formatTable(
    columns,
    result.map(row => columns.map(column => formatValue(row[column]))),
    index => result.every(row => isNumberOrNull(row[columns[index] ?? ''])),
  );
  return Buffer.from(table);
}

/** `call` has the endpoint and the parameters as the user wrote them, to find misspelled names. */
async function getFromServer(
  server: RunningServer,
  path: string,
  contentType: string,
  call: { readonly name: string; readonly parameters: URLSearchParams },
): Promise<ServerResponse> {
  const { url } = server;
  const response = await sendRequest(server, path, { headers: { Accept: contentType } }, RETRY_POLICY);
  const { status, body } = response;
  await checkCall(server, call.name, call.parameters, status);
  if (status !== 200) throw createResponseError(url, status, body.toString());
  if (!response.headers.get('content-type')?.startsWith(contentType))
    throw new OperatorError(`${url} did not return ${contentType}; is it the public listener of Dendro?`);
  return response;
}

async function explain(
  invocation: Invocation,
  server: RunningServer | undefined,
  name: string,
  parameters: URLSearchParams,
  format: ResultFormat | undefined,
): Promise<Buffer> {
  if (format === 'csv' || format === 'csv-raw')
    throw new UsageError(
      `${nameOf(invocation, 'explain')} and ${nameOf(invocation, format)} exclude each other; allowed: --json`,
    );
  const result =
    server === undefined
      ? await useStore(invocation, name, parameters, (store, endpoint, validated) =>
          explainEndpoint({ store, clock: systemClock }, endpoint, validated),
        )
      : await fetchExplanation(server, name, parameters);
  return Buffer.from(format === 'json' ? JSON.stringify({ result }) : formatExplanation(result));
}

async function fetchExplanation(
  server: RunningServer,
  name: string,
  parameters: URLSearchParams,
): Promise<Explanation> {
  const path = `/api/endpoints/explain/${encodeURIComponent(name)}?${parameters}`;
  const { body } = await getFromServer(server, path, 'application/json', { name, parameters });
  return (JSON.parse(body.toString()) as { result: Explanation }).result;
}

/**
 * Throws a UsageError if the URL is that of the wrong listener, or the name of the endpoint or of a parameter is wrong. Also
 * checks the names after a status of 200, because the server ignores unknown parameters. Asks the server for its endpoints only
 * after the query, so that a token with a low rate limit can still run the query.
 */
async function checkCall(
  server: RunningServer,
  name: string,
  parameters: URLSearchParams,
  status: number,
): Promise<void> {
  if (status === 404) await checkListener(server, 'public');
  const mayHaveUnknownParameter = parameters.size > 0 && (status === 200 || status === 400);
  if (status !== 404 && !mayHaveUnknownParameter) return;
  const endpoints = await listEndpoints(server).catch(() => undefined);
  if (endpoints === undefined) return;
  const endpoint = endpoints.find(({ id, name: known }) => known === name || id === name.toLowerCase());
  if (endpoint !== undefined)
    checkParameterNames(
      endpoint.name,
      endpoint.parameters.map(parameter => parameter.name),
      parameters,
    );
  else if (status === 404)
    throw new UsageError(
      `${server.url} has no endpoint ${name}; ${suggest(
        name,
        endpoints.map(known => known.name),
        'available',
      )}`,
    );
}

/** `value` comes from parseExactJson, where a number can be a marked string. */
function isNumberOrNull(value: unknown): boolean {
  return value === null || typeof value === 'number' || (typeof value === 'string' && !isText(value));
}

/** On standard error, so that the rows on standard output stay as they are. */
function reportClipped(reasons: string, nextCursor: string | undefined): void {
  if (reasons !== '') process.stderr.write(`rows are missing: ${escapeForTerminal(reasons)}\n`);
  if (nextCursor !== undefined)
    process.stderr.write(`there may be more rows: --param cursor=${escapeForTerminal(nextCursor)}\n`);
}

/** `value` comes from parseExactJson. */
function formatValue(value: unknown): string {
  if (value === null) return '';
  return isText(value) ? value : stringifyExactJson(value);
}
