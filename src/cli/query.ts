// dendro query: runs an endpoint and prints its rows. With --explain, it prints how many records remain after each condition of the
// query instead.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type AppConfig,
  type Invocation,
  nameOf,
  readAppConfig,
  readEndpointFolders,
  readOneOf,
} from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import type { Explanation } from '../endpoint/explain.ts';
import { isText, parseExactJson, stringifyExactJson } from '../logs/exact-json.ts';
import type { Io } from './io.ts';
import {
  type CompleteResponse,
  createResponseError,
  findServer,
  listEndpoints,
  openLocal,
  type RetryPolicy,
  sendRequest,
  type Target,
} from './target.ts';
import { escapeForTerminal, escapeLinesForTerminal, formatTable } from './terminal.ts';

/** What the user asks for. */
interface Query {
  readonly endpoint: string;
  readonly parameters: URLSearchParams;
  /** Undefined means a table. */
  readonly format: 'json' | 'csv' | undefined;
}

export async function query(invocation: Invocation, io: Io): Promise<void> {
  const asked = readQuery(invocation);
  const server = findServer(invocation);
  const config = () => ({
    ...readAppConfig(invocation),
    endpointFolders: readEndpointFolders(invocation),
  });
  const target = server ?? (await openDirectory(config(), io));
  try {
    const output = await (invocation.isOn('explain') ? explain : runQuery)(target, asked, io);
    // Only a terminal gets escaped text. A file or another program gets the output unchanged.
    io.stdout.write(io.stdout.isTTY ? escapeLinesForTerminal(output.toString()) : output);
    if (output.length > 0 && output.at(-1) !== LINE_FEED) io.stdout.write('\n');
  } finally {
    await target.close();
  }
}

/** Says if the directory is new: a mistyped name would look like lost records. */
function openDirectory(config: AppConfig, io: Io): Promise<Target> {
  const directory = resolve(config.store.dataDirectory);
  if (config.storeName === 'duckdb' && !existsSync(directory))
    io.stderr.write(
      `dendro: ${escapeForTerminal(directory)} does not exist; it is created, and has no records\n`,
    );
  return openLocal(config, io, { checksEndpoints: true });
}

const LINE_FEED = 0x0a;

function readQuery(invocation: Invocation): Query {
  const [endpoint, ...others] = invocation.positionals;
  if (endpoint === undefined || others.length > 0)
    throw new UsageError('name exactly one endpoint, such as: dendro query logs.all --project abc');
  const format = readOneOf(invocation, ['json', 'csv']);
  if (format === 'csv' && invocation.isOn('explain'))
    throw new UsageError(
      `${nameOf(invocation, 'explain')} and ${nameOf(invocation, format)} exclude each other; allowed: --json`,
    );
  return { endpoint, parameters: readParameters(invocation), format };
}

function readParameters(invocation: Invocation): URLSearchParams {
  const parameters = new URLSearchParams();
  const project = invocation.text('project');
  if (project !== undefined) parameters.append('project', project);
  for (const pair of invocation.many('param')) {
    const separator = pair.indexOf('=');
    if (separator < 1) throw new UsageError(`${nameOf(invocation, 'param')} ${pair} is not NAME=VALUE`);
    parameters.append(pair.slice(0, separator), pair.slice(separator + 1));
  }
  if (parameters.has('format')) throw new UsageError('format is not a parameter here; use --json or --csv');
  return parameters;
}

async function runQuery(target: Target, asked: Query, io: Io): Promise<Buffer> {
  const { endpoint, format } = asked;
  const parameters = new URLSearchParams(asked.parameters);
  // A table is for people, who can read ISO 8601.
  if (format === undefined && !parameters.has('timestamps')) parameters.append('timestamps', 'iso');
  const path = `/api/endpoints/query/${encodeURIComponent(endpoint)}?${parameters}`;
  const { headers, body } = await get(
    target,
    path,
    format === 'csv' ? 'text/csv' : 'application/json',
    asked,
  );
  reportClipped(headers, io);
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

async function explain(target: Target, asked: Query): Promise<Buffer> {
  const path = `/api/endpoints/explain/${encodeURIComponent(asked.endpoint)}?${asked.parameters}`;
  const { body } = await get(target, path, 'application/json', asked);
  if (asked.format === 'json') return body;
  return Buffer.from(formatExplanation((JSON.parse(body.toString()) as { result: Explanation }).result));
}

/** Someone waits for the rows, so a server that does not exist is reported at once. */
const RETRY_POLICY: RetryPolicy = { maxAttempts: 5, retryUnreachable: false };

async function get(
  target: Target,
  path: string,
  contentType: string,
  { endpoint }: Query,
): Promise<CompleteResponse> {
  const response = await sendRequest(target, path, { headers: { Accept: contentType } }, RETRY_POLICY);
  const { status, headers, body } = response;
  if (status === 404) await checkEndpoint(target, endpoint);
  if (status !== 200) throw createResponseError(target, status, body.toString());
  if (!headers.get('content-type')?.startsWith(contentType))
    throw new OperatorError(
      `${target.url} did not return ${contentType}; is it the public listener of Dendro?`,
    );
  // The API ignores unknown parameters and choices. In a command, one is probably a typo.
  const ignored = headers.get('dendro-ignored');
  if (ignored !== null)
    throw new UsageError(
      `endpoint ${endpoint} does not know this parameter or its value: ${decodeURIComponent(ignored)}`,
    );
  return response;
}

/** Throws a UsageError if the URL is that of the wrong listener, or if there is no such endpoint. */
async function checkEndpoint(target: Target, endpoint: string): Promise<void> {
  const endpoints = await listEndpoints(target, RETRY_POLICY);
  if (endpoints.some(({ id, name }) => name === endpoint || id === endpoint.toLowerCase())) return;
  const names = endpoints.map(({ name }) => name);
  throw new UsageError(`there is no endpoint ${endpoint}; ${suggest(endpoint, names, 'available')}`);
}

/** On standard error, so that the rows on standard output stay as they are. */
function reportClipped(headers: Headers, { stderr }: Io): void {
  const reasons = headers.get('dendro-clipped');
  const nextCursor = headers.get('dendro-next-cursor');
  if (reasons !== null) stderr.write(`rows are missing: ${escapeForTerminal(reasons)}\n`);
  if (nextCursor !== null)
    stderr.write(`there may be more rows: --param cursor=${escapeForTerminal(nextCursor)}\n`);
}

/** `value` comes from parseExactJson, where a number can be a marked string. */
function isNumberOrNull(value: unknown): boolean {
  return value === null || typeof value === 'number' || (typeof value === 'string' && !isText(value));
}

/** `value` comes from parseExactJson. */
function formatValue(value: unknown): string {
  if (value === null) return '';
  return isText(value) ? value : stringifyExactJson(value);
}

/** One line per fact, then the summary. */
function formatExplanation(explanation: Explanation): string {
  const { parameters, window, newest, oldest, conditions, summary } = explanation;
  const counts = conditions.map(({ name, remaining }) => [
    `after ${name}`,
    `${remaining} ${remaining === 1 ? 'record' : 'records'}`,
  ]);
  const facts = [
    ...Object.entries(parameters).map(([name, value]) => [`parameter ${name}`, value]),
    ['window start', window.start],
    ['window end', window.end],
    ['newest record', newest],
    ['oldest record', oldest],
    ...counts,
  ] as [label: string, value: string | null][];
  const width = Math.max(...facts.map(([label]) => label.length));
  const lines = facts.map(([label, value]) => `${label.padEnd(width)}  ${escapeForTerminal(value ?? '-')}`);
  return [...lines, escapeForTerminal(summary), ''].join('\n');
}
