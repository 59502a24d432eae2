// dendro query: runs an endpoint on the store of --data, or on a running server with --url, and prints its rows.

import { type Invocation, readEndpointFolders, readStoreOptions } from '../config.ts';
import { type DendroError, OperatorError, UsageError } from '../domain/errors.ts';
import { checkCatalog, loadCatalog } from '../endpoint/catalog.ts';
import { encodeRows, formatCells, type ResultFormat } from '../endpoint/encode-rows.ts';
import { runEndpoint } from '../endpoint/run-endpoint.ts';
import { replaySpool } from '../intake/applier.ts';
import { openStore, storeNameOf } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { readServerUrl } from './server-url.ts';
import { formatTable } from './table.ts';

export async function query(invocation: Invocation): Promise<void> {
  const [name, ...others] = invocation.positionals;
  if (name === undefined || others.length > 0)
    throw new UsageError('name one endpoint, such as dendro query logs.all --project abc');
  const parameters = readParameters(invocation);
  const url = invocation.text('url');
  const output =
    url === undefined
      ? await askStore(invocation, name, parameters)
      : await askServer(
          url,
          invocation.text('token') ?? invocation.apiKey,
          name,
          parameters,
          formatOf(invocation),
        );
  process.stdout.write(output);
}

function readParameters(invocation: Invocation): URLSearchParams {
  const parameters = new URLSearchParams();
  const project = invocation.text('project');
  if (project !== undefined) parameters.append('project', project);
  for (const pair of invocation.many('param')) {
    const mark = pair.indexOf('=');
    if (mark < 1) throw new UsageError(`--param ${pair} is not NAME=VALUE`);
    parameters.append(pair.slice(0, mark), pair.slice(mark + 1));
  }
  return parameters;
}

/** Undefined stands for a table. */
function formatOf(invocation: Invocation): ResultFormat | undefined {
  if (invocation.isOn('json')) return 'json';
  return invocation.isOn('csv') ? 'csv' : undefined;
}

async function askStore(invocation: Invocation, name: string, parameters: URLSearchParams): Promise<string> {
  const options = readStoreOptions(invocation);
  const catalog = loadCatalog(readEndpointFolders(invocation), storeNameOf(options));
  const endpoint = catalog.find(name);
  if (endpoint === undefined)
    throw new UsageError(
      `there is no endpoint ${name}; endpoints are ${catalog.endpoints.map(e => e.definition.name).join(', ')}`,
    );
  const store = await openStore(options);
  try {
    await checkCatalog(catalog, store);
    await replaySpool(options.dataDirectory, store);
    const { value } = await runEndpoint({ store, clock: systemClock }, endpoint, { parameters: parameters });
    const { rows } = value.result;
    const { columns } = endpoint.query;
    const format = formatOf(invocation);
    if (format !== undefined) return withLineEnd(encodeRows(columns, rows, format));
    return formatTable(
      columns.map(column => column.name),
      rows.map(row => formatCells(columns, row)),
    );
  } finally {
    await store.close();
  }
}

async function askServer(
  url: string,
  token: string | undefined,
  name: string,
  parameters: URLSearchParams,
  format: ResultFormat | undefined,
): Promise<string> {
  if (token === undefined) throw new UsageError('--url needs a token: --token, or DENDRO_API_KEY');
  const target = `${readServerUrl(url)}/api/endpoints/query/${encodeURIComponent(name)}?${parameters}`;
  const headers = { 'X-API-KEY': token, Accept: format === 'csv' ? 'text/csv' : 'application/json' };
  const response = await fetch(target, { headers }).catch(error => {
    throw new OperatorError(
      `${url} cannot be reached: ${(error.cause as Error | undefined)?.message ?? error.message}`,
    );
  });
  const body = await response.text();
  if (!response.ok) throw new OperatorError(`${response.status}: ${readMessage(body)}`);
  const type = format === 'csv' ? 'text/csv' : 'application/json';
  if (!response.headers.get('content-type')?.startsWith(type))
    throw new OperatorError(`${url} does not answer as a Dendro server does`);
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

function readMessage(body: string): string {
  try {
    return (JSON.parse(body) as { error: DendroError }).error.message;
  } catch {
    return 'the server did not say why';
  }
}
