// A server process for the fault tests, and what the operating system and its metrics say about it.
import { readdirSync, readFileSync } from 'node:fs';
import { fetchResponse } from '../support/app.ts';
import { PROCESS_API_KEY, type RunOptions, type ServerProcess, startServer } from '../support/process.ts';

const headers = { 'X-API-KEY': PROCESS_API_KEY };

export interface ProcessUse {
  readonly rssBytes: number;
  /** The largest `rssBytes` so far. */
  readonly peakBytes: number;
  readonly threads: number;
  readonly descriptors: number;
}

export function serve(
  dataDirectory: string,
  args: readonly string[] = [],
  { env, ...options }: RunOptions = {},
): Promise<ServerProcess> {
  return startServer(['--data', dataDirectory, ...args], {
    env: { DENDRO_API_KEY: PROCESS_API_KEY, ...env },
    ...options,
  });
}

export async function kill(server: ServerProcess): Promise<void> {
  server.signal('SIGKILL');
  await server.ended;
}

/** Reads /proc, so it needs Linux. */
export function readUse({ pid }: ServerProcess): ProcessUse {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    rssBytes: read('VmRSS') * 1024,
    peakBytes: read('VmHWM') * 1024,
    threads: read('Threads'),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}

export async function readMetric({ internalUrl }: ServerProcess, name: string): Promise<number> {
  const { text } = await fetchResponse(`${internalUrl}/metrics`, { headers });
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
}

/** The status of a query that runs in the store; undefined without a response within 20 s. */
export async function queryStatus({ url }: ServerProcess): Promise<number | undefined> {
  const init = { headers, signal: AbortSignal.timeout(20_000) };
  return fetchResponse(`${url}/api/endpoints/query/logs.all?project=p0`, init).then(
    ({ status }) => status,
    () => undefined,
  );
}
