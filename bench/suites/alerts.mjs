// Suite `alerts`: what 200 alerts that are due every minute cost on the large data set: their share of the time of the store, and the
// latency of cached results and of intake with and without them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { listProjects } from '../records/dataset.mjs';
import { createLines } from '../records/sent-records.mjs';
import { formatCount } from '../report/tables.mjs';
import { API_KEY, serveDendro } from '../systems/dendro.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';
import { sendTimedRequest } from '../tools/timed-request.mjs';

/** @import { Context, Report, SuiteResults, Table } from '../types.ts' */
/** @typedef {Awaited<ReturnType<typeof serveDendro>>} DendroServer */

const ALERTS = 200;
const RECORDS_PER_REQUEST = 10;

/** @param {Context} context @param {{ rounds: number, seconds: number }} sizes @param {Report} report */
export async function measureAlerts(context, { rounds, seconds }, report) {
  const { workspace, largeDataset } = context;
  const directory = await context.loadLargeDataset(report);
  const endpoints = join(workspace.directory, 'alerts-endpoints');
  writeEndpoint(endpoints);
  const common = ['--endpoints', endpoints, '--metrics-open'];
  const without = { hitMs: [], intakeMs: [], storeShare: [], evaluations: 0, missed: 0 };
  const withAlerts = { hitMs: [], intakeMs: [], storeShare: [], evaluations: 0, missed: 0 };
  const commands = new Set();
  const variants = [
    { samples: without, flags: common },
    { samples: withAlerts, flags: [...common, '--alerts'] },
  ];
  for (let index = 1; index <= rounds; index++)
    for (const { samples, flags } of variants) {
      report(`round ${index} of ${rounds}${samples === withAlerts ? ', with alerts' : ''}`);
      const server = await serveDendro(workspace, directory, { flags });
      commands.add(server.command);
      try {
        await runRound(server, seconds, samples);
      } finally {
        await server.stop();
      }
    }
  return {
    commands: [...commands],
    perKind: largeDataset.perKind,
    alerts: ALERTS,
    seconds,
    without: summarize(without),
    withAlerts: summarize(withAlerts),
  };
}

/**
 * One client sends a few hundred thousand requests: too many to keep each.
 * @param {{ hitMs: number[], intakeMs: number[], storeShare: number[], evaluations: number, missed: number }} samples
 */
function summarize({ hitMs, intakeMs, storeShare, evaluations, missed }) {
  const [hit, intake] = [hitMs, intakeMs].map(ms => ({
    requests: ms.length,
    p50: median(ms),
    p95: percentile(ms, 0.95),
  }));
  return { hit, intake, storeShare, evaluations, missed };
}

/**
 * An alert with a set of parameters for each of 200 projects: functions with failed invocations in the last hour.
 * @param {string} directory
 */
function writeEndpoint(directory) {
  const projects = listProjects();
  const sets = Array.from(
    { length: ALERTS },
    (_, index) => `    - { project: '${projects[index % projects.length]}', page: ${index} }`,
  );
  mkdirSync(join(directory, 'errors'), { recursive: true });
  writeFileSync(
    join(directory, 'errors', 'endpoint.yaml'),
    `id: 0d0f0a5c-2f1c-4f64-8b0a-6a7e1c3f9b21
name: bench.errors
description: Functions of a project with failed invocations in the last hour.
reads: function_edge
parameters:
  project: { type: text, required: true, description: Project reference. }
  page: { type: integer, required: true, description: Any number. }
  window: { type: choice, choices: { 1hr: { window_seconds: 3600 } }, default: 1hr, description: The time before now. }
columns:
  function_id: { type: text, description: The function. }
  errors: { type: integer, description: Number of failed invocations. }
range: { window: window_seconds }
cache: none
alert:
  every: 1m
  key: [function_id]
  notify: []
  parameters:
${sets.join('\n')}
`,
  );
  writeFileSync(
    join(directory, 'errors', 'duckdb.sql'),
    `select function_id, count(*) as errors
from function_edge_logs
where project = $project and timestamp > $now - to_seconds($window_seconds) and status_code >= 500 and $page >= 0
group by 1
having errors > 5
`,
  );
}

/**
 * One client alternates between a cached result and a request of the intake.
 * @param {DendroServer} server @param {number} seconds
 * @param {{ hitMs: number[], intakeMs: number[], storeShare: number[], evaluations: number, missed: number }} samples
 */
async function runRound(server, seconds, samples) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const project = listProjects()[0] ?? '';
  const url = `${server.url()}/api/endpoints/query/functions.invocation-stats?project=${project}&interval=1hr`;
  const options = { agent, apiKey: API_KEY };
  await sendTimedRequest(url, options);
  const start = performance.now();
  while (performance.now() - start < seconds * 1000) {
    for (let index = 0; index < 20; index++) {
      const { ms, cacheStatus } = await sendTimedRequest(url, options);
      if (cacheStatus.includes('hit')) samples.hitMs.push(round(ms)); // an entry is refreshed now and then
    }
    const before = performance.now();
    const response = await fetch(`${server.internalUrl}/api/logs?source_name=edge`, {
      method: 'POST',
      headers: { 'X-API-KEY': API_KEY, 'Content-Type': 'application/x-ndjson' },
      body: createLines(RECORDS_PER_REQUEST).join(''),
    });
    if (response.status !== 200) throw new Error(`intake returned ${response.status}`);
    await response.arrayBuffer();
    samples.intakeMs.push(round(performance.now() - before));
  }
  agent.destroy();
  const elapsed = (performance.now() - start) / 1000;
  const metrics = await (await fetch(`${server.internalUrl}/metrics`)).text();
  /** @param {string} name */
  const read = name =>
    Number(
      metrics
        .split('\n')
        .find(line => line.startsWith(`${name} `))
        ?.slice(name.length + 1) ?? 0,
    );
  samples.storeShare.push(round(read('dendro_query_store_seconds_sum{endpoint="bench.errors"}') / elapsed));
  samples.evaluations += read('dendro_alert_evaluations_total{outcome="ok"}');
  samples.missed += read('dendro_alert_evaluations_total{outcome="missed"}');
}

/** @param {SuiteResults['alerts']} result @returns {Table[]} */
export function alertsTables({ perKind, alerts, without, withAlerts }) {
  /** @param {string} label @param {'hit' | 'intake'} name */
  const toRow = (label, name) => [
    label,
    without[name].p50.toFixed(2),
    withAlerts[name].p50.toFixed(2),
    without[name].p95.toFixed(2),
    withAlerts[name].p95.toFixed(2),
    (withAlerts[name].p50 / without[name].p50).toFixed(2),
  ];
  return [
    {
      title: `Requests with and without ${alerts} alerts every minute, ${formatCount(2 * perKind)} records, milliseconds`,
      header: ['request', 'p50 without', 'p50 with', 'p95 without', 'p95 with', 'p50 ratio'],
      rows: [toRow('cache hit', 'hit'), toRow(`intake of ${RECORDS_PER_REQUEST} records`, 'intake')],
    },
    {
      title: `Evaluations of ${alerts} alerts every minute`,
      header: ['evaluations', 'missed', 'share of the time of one query slot'],
      rows: [[withAlerts.evaluations, withAlerts.missed, Math.max(...withAlerts.storeShare).toFixed(3)]],
    },
  ];
}
