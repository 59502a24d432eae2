// Suite `warming`: how much the cache warmer slows requests down while thousands of cached results are always due for a refresh.
// One server alternates between rounds with the warmer and rounds without it, so that both use the same process, cache and store,
// and other load on the machine affects both.
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { listProjects } from '../records/dataset.mjs';
import { formatCount } from '../report/tables.mjs';
import { API_KEY, loadDendro, THREAD_POOL } from '../systems/dendro.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';
import { sendTimedRequest } from '../tools/timed-request.mjs';

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Context, Report, SuiteResults, Table } from '../types.ts' */
/**
 * `warmed` is the number of hits on results that the warmer had refreshed.
 * @typedef {{ hitMs: number[], queryMs: number[], warmed: number }} Samples
 */

const FILLING_CLIENTS = 8;
/** Of ten requests, nine are cache hits and one runs its query, which competes with the warmer for the store. */
const REQUESTS_PER_QUERY = 10;

/**
 * @param {Context} context
 * @param {{ entries: number, recordsPerKind: number, rounds: number, roundMs: number }} sizes @param {Report} report
 */
export async function measureWarming({ workspace, createDataset }, sizes, report) {
  const { entries, recordsPerKind, rounds, roundMs } = sizes;
  const dataDirectory = join(workspace.directory, 'warming');
  const endpoints = join(workspace.directory, 'warming-endpoints');
  await loadDendro(workspace, dataDirectory, createDataset(recordsPerKind), { quietSeconds: 0 }, report);
  writeEndpoint(endpoints);
  const serverFile = join(import.meta.dirname, 'warming-server.mjs');
  const command = [process.execPath, serverFile, API_KEY, dataDirectory, endpoints];
  const server = await workspace.start(command, /^ready: (.*)/, THREAD_POOL);
  const url = server.readyText;
  const agent = new Agent({ keepAlive: true, maxSockets: FILLING_CLIENTS });
  /** @type {Samples} */
  const withoutWarmer = { hitMs: [], queryMs: [], warmed: 0 };
  /** @type {Samples} */
  const withWarmer = { hitMs: [], queryMs: [], warmed: 0 };
  const pause = { message: 'pause', samples: withoutWarmer };
  const resume = { message: 'resume', samples: withWarmer };
  try {
    await fillCache(agent, url, entries, report);
    const filledAt = performance.now();
    for (let index = 0; index < rounds; index++) {
      for (const { message, samples } of index % 2 === 0 ? [pause, resume] : [resume, pause]) {
        await sendMessage(server.child, message);
        await runRound(agent, url, { entries, first: index * 1000, roundMs, filledAt }, samples);
      }
      report(`round ${index + 1} of ${rounds}`);
    }
    if (withWarmer.warmed === 0) throw new Error('no request hit a result that the warmer had refreshed');
    const commands = [workspace.describe(command)];
    return { commands, entries, recordsPerKind, rounds, roundMs, withoutWarmer, withWarmer };
  } finally {
    agent.destroy();
    await server.stop();
  }
}

/**
 * An endpoint whose results are due for a refresh after 1 s. Each value of `page` has a cache entry of its own, so that there can
 * be more entries than projects.
 * @param {string} directory
 */
function writeEndpoint(directory) {
  mkdirSync(join(directory, 'stats'), { recursive: true });
  writeFileSync(
    join(directory, 'stats', 'endpoint.yaml'),
    `id: 6f6c1a58-0a58-4c7e-9d2b-51c0a7f4e0b4
name: bench.stats
description: Invocations of one project in the last seven days.
reads: function_edge
parameters:
  project: { type: text, required: true, description: Project reference. }
  page: { type: text, required: true, description: Any text. }
columns:
  page: { type: text, description: The requested page. }
  count: { type: integer, description: Number of invocations. }
  max_execution_time: { type: number, description: Longest execution time in milliseconds. }
cache: { lifetime_seconds: 3600, warming_seconds: 1 }
`,
  );
  writeFileSync(
    join(directory, 'stats', 'duckdb.sql'),
    `-- Number and longest execution time of one project's invocations.
select $page as page, count(*) as count, max(execution_time_ms) as max_execution_time
from function_edge_logs
where project = $project and timestamp > $now - interval 7 day
`,
  );
}

const projects = listProjects();

/** @param {number} entry */
function targetOf(entry) {
  const page = Math.floor(entry / projects.length);
  return `/api/endpoints/query/bench.stats?project=${projects[entry % projects.length]}&page=${page}`;
}

/** @param {Agent} agent @param {string} url @param {number} entries @param {Report} report */
async function fillCache(agent, url, entries, report) {
  let next = 0;
  const fill = async () => {
    while (next < entries) {
      const { cacheStatus } = await sendTimedRequest(`${url}${targetOf(next++)}`, { agent, apiKey: API_KEY });
      if (!cacheStatus.includes('fwd=miss')) throw new Error(`expected a cache miss, got ${cacheStatus}`);
      report(`filling the cache: ${next} of ${entries} results`);
    }
  };
  await Promise.all(Array.from({ length: FILLING_CLIENTS }, fill));
}

/** Sends a message and waits until the server confirms it. @param {ChildProcess} child @param {string} message */
function sendMessage(child, message) {
  return new Promise(resolve => {
    child.once('message', resolve);
    child.send(message);
  });
}

/**
 * One client sends one request after the other.
 * @param {Agent} agent @param {string} url
 * @param {{ entries: number, first: number, roundMs: number, filledAt: number }} options @param {Samples} samples
 */
async function runRound(agent, url, { entries, first, roundMs, filledAt }, samples) {
  const end = performance.now() + roundMs;
  for (let index = first; performance.now() < end; index++) {
    if (index % REQUESTS_PER_QUERY === 0) {
      const target = `/api/endpoints/query/logs.all?project=${projects[index % projects.length]}`;
      const { ms } = await sendTimedRequest(`${url}${target}`, { agent, apiKey: API_KEY });
      samples.queryMs.push(round(ms));
      continue;
    }
    // 7919 is prime, so the requests reach all entries.
    const target = targetOf((index * 7919) % entries);
    const { ms, cacheStatus, age } = await sendTimedRequest(`${url}${target}`, { agent, apiKey: API_KEY });
    if (!cacheStatus.includes('hit')) throw new Error(`expected a cache hit, got ${cacheStatus}`);
    samples.hitMs.push(round(ms));
    // The age is in whole seconds. A result that is younger than the filled cache was refreshed by the warmer.
    if ((age + 1) * 1000 < performance.now() - filledAt) samples.warmed++;
  }
}

/**
 * @param {SuiteResults['warming']} result
 * @returns {Table[]}
 */
export function warmingTables({ entries, withoutWarmer, withWarmer }) {
  /** @param {string} label @param {number[]} without @param {number[]} withIt */
  const toRow = (label, without, withIt) => [
    label,
    median(without).toFixed(2),
    median(withIt).toFixed(2),
    percentile(without, 0.95).toFixed(2),
    percentile(withIt, 0.95).toFixed(2),
    (percentile(withIt, 0.95) / percentile(without, 0.95)).toFixed(2),
  ];
  return [
    {
      title: `Requests with and without the warmer, ${formatCount(entries)} cached results always due, milliseconds`,
      header: ['request', 'p50 without', 'p50 with', 'p95 without', 'p95 with', 'p95 ratio'],
      rows: [
        toRow('cache hit', withoutWarmer.hitMs, withWarmer.hitMs),
        toRow('logs.all, runs its query', withoutWarmer.queryMs, withWarmer.queryMs),
      ],
    },
  ];
}
