// Dendro as a user runs it: loaded with `dendro ingest`, served by `dendro serve`, queried over HTTP. The result cache is
// off unless a suite passes other flags, so that every request runs its query.
import { Agent } from 'node:http';
import { join } from 'node:path';
import { KINDS } from '../records/dataset.mjs';
import { streamRecords } from '../records/stream-records.mjs';
import { readDirectoryBytes } from '../tools/system.mjs';
import { sendTimedRequest } from '../tools/timed-request.mjs';

/** @import { BenchRequest, Dataset, Report, Workspace } from '../types.ts' */

const dendro = join(import.meta.dirname, '..', '..', 'bin', 'dendro');
const compactProcess = join(import.meta.dirname, 'compact-process.mjs');
export const API_KEY = 'benchmark-api-key-0123456789';
/** With --studio, it allows the parameter `sql`. */
const QUERY_KEY = 'benchmark-query-key-0123456789';
/** The default of `dendro serve`. */
export const MEMORY_LIMIT = '500MB';
/** The value that bin/dendro sets, for processes of the benchmark that bin/dendro does not start. */
export const THREAD_POOL = { UV_THREADPOOL_SIZE: '16' };

/**
 * Loads records, then compacts them, so that the measured store is in its long-term state.
 * @param {Workspace} workspace @param {string} directory @param {Dataset} dataset
 * @param {{ share?: number, quietSeconds: number }} options @param {Report} report
 */
export async function loadDendro(workspace, directory, dataset, { share, quietSeconds }, report) {
  for (const kind of KINDS) {
    const command = [process.execPath, dendro, 'ingest', '--source', kind, '--data', directory, '-'];
    await streamRecords(
      workspace,
      dataset,
      { kind, format: 'ndjson', share },
      stdin => workspace.readOutput(command, { stdin }),
      text => report(`Dendro, ${text}`),
    );
  }
  await compact(workspace, directory, quietSeconds, report);
}

/**
 * Does the maintenance that a running server does in the background. Skips it for 0 quiet seconds.
 * @param {Workspace} workspace @param {string} directory @param {number} quietSeconds @param {Report} report
 */
export async function compact(workspace, directory, quietSeconds, report) {
  if (quietSeconds === 0) return;
  report('Dendro, compacting');
  await workspace.readOutput([process.execPath, compactProcess, directory, String(quietSeconds)]);
}

/**
 * Creates a token that is pinned to one project.
 * @param {Workspace} workspace @param {string} directory @param {string} project
 */
export async function createPinnedToken(workspace, directory, project) {
  const command = [process.execPath, dendro, 'token', 'create', '--data', directory, '--name', project];
  const output = await workspace.readOutput([...command, '--scope', 'query', '--project', project]);
  return output.trim();
}

/**
 * @param {Workspace} workspace @param {string} directory
 * @param {{ tokens?: Record<string, string>, flags?: string[] }} options tokens by pinned project
 */
export async function serveDendro(
  workspace,
  directory,
  { tokens = {}, flags = ['--cache-bytes', '0'] } = {},
) {
  const ports = ['--port', '0', '--internal-port', '0'];
  const command = [process.execPath, dendro, 'serve', '--data', directory, ...ports, ...flags];
  /** @type {string | undefined} */
  let publicUrl;
  const server = await workspace.start(
    command,
    /^internal: listening on (.*)/,
    { DENDRO_API_KEY: API_KEY, DENDRO_QUERY_KEY: QUERY_KEY },
    line => {
      publicUrl ??= /^public: listening on (.*)/.exec(line)?.[1]; // printed before the internal address
    },
  );
  const defaultAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    name: 'dendro',
    command: workspace.describe(command),
    internalUrl: server.readyText,
    /** Of the public listener. */
    url: () => publicUrl,
    pid: server.child.pid,

    /** @param {Pick<BenchRequest, 'endpoint' | 'parameters' | 'pinnedProject'>} request */
    async query({ endpoint, parameters, pinnedProject }, withRows = false, agent = defaultAgent) {
      const url = `${publicUrl}/api/endpoints/query/${endpoint}?${new URLSearchParams(parameters)}`;
      const ownKey = parameters['sql'] === undefined ? API_KEY : QUERY_KEY;
      const apiKey = pinnedProject === undefined ? ownKey : tokens[pinnedProject];
      const { ms, body, cacheStatus } = await sendTimedRequest(url, { agent, apiKey });
      if (cacheStatus.includes('hit')) throw new Error(`${url} was served from the cache, not the store`);
      /** @type {object[]} */
      const rows = withRows ? JSON.parse(body).result : [];
      return { ms, rows: rows.map(row => Object.values(row)) };
    },

    diskBytes: () => readDirectoryBytes(directory),

    async stop() {
      defaultAgent.destroy();
      await server.stop();
    },
  };
}
