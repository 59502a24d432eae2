// What callers notice of the warmer while thousands of live answers are always due. One server, whose warmer works in one
// turn and rests in the next: the same process, cache and store, and whatever disturbs the machine disturbs both.
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { API_KEY, loadDendro } from '../peers/dendro.mjs';
import { listProjects } from '../records/projects.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';

const FILLING_CALLERS = 8;
/** Of ten calls, nine are answered by the cache and one runs its query: there it meets the warmer's loads. */
const CALLS_PER_QUERY = 10;
/** As bin/dendro sets it. */
const THREAD_POOL = { UV_THREADPOOL_SIZE: '16' };

export async function measureWarming(
  { workplace, makePlatform },
  { entries, recordsPerKind, turns, turnMs },
  report,
) {
  const dataFolder = join(workplace.folder, 'warming');
  const endpoints = join(workplace.folder, 'warming-endpoints');
  await loadDendro(workplace, dataFolder, makePlatform(recordsPerKind), {}, report);
  writeEndpoint(endpoints);
  const serverFile = join(import.meta.dirname, 'warming-server.mjs');
  const command = [process.execPath, serverFile, API_KEY, dataFolder, endpoints];
  const server = await workplace.start(command, /^ready: (.*)/, THREAD_POOL);
  const agent = new Agent({ keepAlive: true, maxSockets: FILLING_CALLERS });
  try {
    await fillCache(agent, server.word, entries, done => report(`${done} of ${entries} answers cached`));
    const filledAt = performance.now();
    const sides = {
      rest: { hitMs: [], queryMs: [], warmed: 0 },
      work: { hitMs: [], queryMs: [], warmed: 0 },
    };
    for (let turn = 0; turn < turns; turn++) {
      for (const word of turn % 2 === 0 ? ['rest', 'work'] : ['work', 'rest']) {
        await tell(server.child, word);
        await takeTurn(agent, server.word, { entries, turn, turnMs, filledAt }, sides[word]);
      }
      report(`turn ${turn + 1} of ${turns}`);
    }
    if (sides.work.warmed === 0) throw new Error('no call met an answer that was warmed');
    const { rest, work } = sides;
    return { commands: [workplace.show(command)], entries, recordsPerKind, turns, turnMs, rest, work };
  } finally {
    agent.destroy();
    await server.stop();
  }
}

/** Small statistics of one project; `page` makes of them as many questions as are wanted. Due again after a second. */
function writeEndpoint(folder) {
  mkdirSync(join(folder, 'stats'), { recursive: true });
  writeFileSync(
    join(folder, 'stats', 'endpoint.yaml'),
    `id: 6f6c1a58-0a58-4c7e-9d2b-51c0a7f4e0b4
name: bench.stats
description: Invocations of one project in the last seven days.
reads: function_edge
parameters:
  project: { type: text, required: true, description: Project reference. }
  page: { type: text, required: true, description: Any text. }
columns:
  page: { type: text, description: The page that was asked for. }
  count: { type: integer, description: Number of invocations. }
  max_execution_time: { type: number, description: Longest execution time in milliseconds. }
cache: { lifetime_seconds: 3600, warming_seconds: 1 }
`,
  );
  writeFileSync(
    join(folder, 'stats', 'duckdb.sql'),
    `-- How often did the functions of one project run, and how long at most?
select $page as page, count(*) as count, max(execution_time_ms) as max_execution_time
from function_edge_logs
where project = $project and timestamp > $now - interval 7 day
`,
  );
}

const projects = listProjects();

function cachedTarget(index) {
  const page = Math.floor(index / projects.length);
  return `/api/endpoints/query/bench.stats?project=${projects[index % projects.length]}&page=${page}`;
}

async function fillCache(agent, url, entries, report) {
  let next = 0;
  const fill = async () => {
    while (next < entries) {
      const { cacheStatus } = await ask(agent, `${url}${cachedTarget(next++)}`);
      if (!cacheStatus.includes('fwd=miss')) throw new Error(`expected a miss, not ${cacheStatus}`);
      report(next);
    }
  };
  await Promise.all(Array.from({ length: FILLING_CALLERS }, fill));
}

function tell(child, word) {
  return new Promise(resolve => {
    child.once('message', resolve);
    child.send(word);
  });
}

/** One caller, one call after the other. */
async function takeTurn(agent, url, { entries, turn, turnMs, filledAt }, side) {
  const end = performance.now() + turnMs;
  for (let call = turn * 1000; performance.now() < end; call++) {
    if (call % CALLS_PER_QUERY === 0) {
      const project = projects[call % projects.length];
      side.queryMs.push(
        round((await ask(agent, `${url}/api/endpoints/query/logs.all?project=${project}`)).ms),
      );
      continue;
    }
    // In strides without a common factor, so that the calls go through all the answers.
    const { ms, cacheStatus, age } = await ask(agent, `${url}${cachedTarget((call * 7919) % entries)}`);
    if (!cacheStatus.includes('hit')) throw new Error(`expected a hit, not ${cacheStatus}`);
    side.hitMs.push(round(ms));
    if ((age + 1) * 1000 < performance.now() - filledAt) side.warmed++;
  }
}

function ask(agent, url) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const request = get(url, { agent, headers: { 'X-API-KEY': API_KEY } }, response => {
      response.resume();
      response.on('error', reject);
      response.on('end', () => {
        const ms = performance.now() - start;
        const { age, 'cache-status': cacheStatus = '' } = response.headers;
        if (response.statusCode !== 200) reject(new Error(`${url} answered ${response.statusCode}`));
        else resolve({ ms, cacheStatus, age: Number(age) });
      });
    });
    request.on('error', reject);
  });
}

export function warmingTables({ entries, rest, work }) {
  return [
    {
      title: `Callers' milliseconds with and without warming, ${entries.toLocaleString('en')} live answers always due`,
      header: ['call', 'p50 without', 'p50 with', 'p95 without', 'p95 with', 'p95 ratio'],
      rows: [
        ['answered by the cache', rest.hitMs, work.hitMs],
        ['runs its query, logs.all', rest.queryMs, work.queryMs],
      ].map(([label, without, withWarmer]) => [
        label,
        median(without).toFixed(2),
        median(withWarmer).toFixed(2),
        percentile(without, 0.95).toFixed(2),
        percentile(withWarmer, 0.95).toFixed(2),
        (percentile(withWarmer, 0.95) / percentile(without, 0.95)).toFixed(2),
      ]),
    },
  ];
}
