// dendro query: runs an endpoint on the store of --data, or on a running server with --url, and prints its rows.

import { type Invocation, readEndpointFolders, readStoreOptions } from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { checkCatalog, loadCatalog } from '../endpoint/catalog.ts';
import { encodeRows, formatCells, type ResultFormat } from '../endpoint/encode-rows.ts';
import { runEndpoint } from '../endpoint/run-endpoint.ts';
import { validateParameters } from '../endpoint/validated-requests.ts';
import { replaySpool } from '../intake/applier.ts';
import { openStore, storeNameOf } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import {
  describeUnreachable,
  type RunningServer,
  readErrorMessage,
  readRunningServer,
} from './running-server.ts';
import { formatTable } from './table.ts';

export async function query(invocation: Invocation): Promise<void> {
  const [name, ...others] = invocation.positionals;
  if (name === undefined || others.length > 0)
    throw new UsageError('name exactly one endpoint, such as: dendro query logs.all --project abc');
  const parameters = readParameters(invocation);
  const server = readRunningServer(invocation);
  process.stdout.write(
    server === undefined
      ? await queryStore(invocation, name, parameters)
      : await queryServer(server, name, parameters, readFormat(invocation)),
  );
}

function readParameters(invocation: Invocation): URLSearchParams {
  const parameters = new URLSearchParams();
  const project = invocation.text('project');
  if (project !== undefined) parameters.append('project', project);
  for (const pair of invocation.many('param')) {
    const separator = pair.indexOf('=');
    if (separator < 1) throw new UsageError(`--param ${pair} is not NAME=VALUE`);
    parameters.append(pair.slice(0, separator), pair.slice(separator + 1));
  }
  return parameters;
}

/** Undefined means a table. */
function readFormat(invocation: Invocation): ResultFormat | undefined {
  if (invocation.isOn('json')) return 'json';
  return invocation.isOn('csv') ? 'csv' : undefined;
}

async function queryStore(
  invocation: Invocation,
  name: string,
  parameters: URLSearchParams,
): Promise<string> {
  const options = readStoreOptions(invocation);
  const catalog = loadCatalog(readEndpointFolders(invocation), storeNameOf(options));
  const endpoint = catalog.find(name);
  if (endpoint === undefined)
    throw new UsageError(
      `there is no endpoint ${name}; available: ${catalog.endpoints.map(e => e.definition.name).join(', ')}`,
    );
  const store = await openStore(options);
  try {
    await checkCatalog(catalog, store);
    await replaySpool(options.dataDirectory, store);
    const validated = validateParameters(endpoint.definition, parameters);
    const { result } = await runEndpoint({ store, clock: systemClock }, endpoint, validated);
    const { rows } = result;
    const { columns } = endpoint.query;
    const format = readFormat(invocation);
    if (format !== undefined) return withLineEnd(encodeRows(columns, rows, format));
    return formatTable(
      columns.map(column => column.name),
      rows.map(row => formatCells(columns, row)),
    );
  } finally {
    await store.close();
  }
}

async function queryServer(
  server: RunningServer,
  name: string,
  parameters: URLSearchParams,
  format: ResultFormat | undefined,
): Promise<string> {
  const { url, token } = server;
  const contentType = format === 'csv' ? 'text/csv' : 'application/json';
  const response = await fetch(`${url}/api/endpoints/query/${encodeURIComponent(name)}?${parameters}`, {
    headers: { 'X-API-KEY': token, Accept: contentType },
  }).catch(error => {
    throw new OperatorError(describeUnreachable(server, error));
  });
  const body = await response.text();
  if (!response.ok)
    throw new OperatorError(
      `${url} returned ${response.status}: ${readErrorMessage(body) ?? 'no reason given'}`,
    );
  if (!response.headers.get('content-type')?.startsWith(contentType))
    throw new OperatorError(`${url} did not return ${contentType}; is it the public listener of Dendro?`);
  if (format !== undefined) return withLineEnd(body);
  const { result } = JSON.parse(body) as { result: Record<string, unknown>[] };
  const columns = Object.keys(result[0] ?? {});
  return formatTable(
    columns,
    result.map(row => columns.map(column => formatValue(row[column]))),
  );
}

function withLineEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function formatValue(value: unknown): string {
  if (value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
