// Suite `service`: the server on the large data set. Start time, resident memory, and latency with many clients.
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { pickProjects } from '../records/dataset.mjs';
import { formatCount, formatMs } from '../report/tables.mjs';
import { API_KEY, serveDendro } from '../systems/dendro.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';
import { readPeakResidentMiB, readResidentMiB } from '../tools/system.mjs';
import { listCases } from './cases.mjs';
import { messageOf } from './compare-systems.mjs';
import { createSendCommand } from './intake.mjs';

/** @import { Context, Report, SuiteResults, Table, Workspace } from '../types.ts' */
/** @typedef {Awaited<ReturnType<typeof serveDendro>>} DendroServer */
/** @typedef {ReturnType<typeof summarize>} Latency */

const INTAKE_RATE = 20_000;
const IDLE_MS = 3000;

/**
 * @param {Context} context
 * @param {{ starts: number, oneClientRequests: number, clients: number, seconds: number, intakeSeconds: number }} sizes
 * @param {Report} report
 */
export async function measureService(context, sizes, report) {
  const { workspace, largeDataset } = context;
  const { starts, oneClientRequests, clients, seconds, intakeSeconds } = sizes;
  const directory = await context.loadLargeDataset(report);
  const startMs = [];
  for (let index = 1; index <= starts; index++) {
    report(`start ${index} of ${starts}`);
    startMs.push(await timeStart(workspace, directory));
  }
  const server = await serveDendro(workspace, directory);
  try {
    await sleep(IDLE_MS);
    const idleMiB = readResidentMiB(server.pid);
    report('one client');
    const one = await runClients(server, 1, (_, count) => count >= oneClientRequests);
    report(`${clients} clients`);
    const start = performance.now();
    const many = await runClients(server, clients, now => now - start > seconds * 1000);
    const queryMiB = readPeakResidentMiB(server.pid);
    report(`4 clients and ${formatCount(INTAKE_RATE)} incoming records per second`);
    let isDone = false;
    const sending = workspace
      .readResult(createSendCommand(server.internalUrl, intakeSeconds, INTAKE_RATE), {
        DENDRO_API_KEY: API_KEY,
      })
      .finally(() => {
        isDone = true;
      });
    const withIntake = await runClients(server, 4, () => isDone);
    const sent = await sending;
    return {
      commands: [server.command],
      perKind: largeDataset.perKind,
      startMs,
      // In MiB; the key is part of the format of the results file.
      residentMb: { idle: idleMiB, queries: queryMiB, intake: readPeakResidentMiB(server.pid) },
      sent,
      clients,
      one: summarize(one),
      many: { ...summarize(many), requestsPerSecond: Math.round(many.samples.length / seconds) },
      withIntake: summarize(withIntake),
    };
  } finally {
    await server.stop();
  }
}

/**
 * From the start of the process to the last byte of the first result with 100 records.
 * @param {Workspace} workspace @param {string} directory
 */
async function timeStart(workspace, directory) {
  const request = {
    endpoint: 'logs.all',
    parameters: { project: pickProjects().largest, project_tier: 'PAYG' },
  };
  const start = performance.now();
  const server = await serveDendro(workspace, directory);
  try {
    for (;;) {
      const result = await server.query(request, true).catch(() => undefined); // 503 while the store opens
      if (result?.rows.length === 100) return round(performance.now() - start, 1);
      if (performance.now() - start > 60_000) throw new Error('no complete result within 60 s of the start');
      await sleep(5);
    }
  } finally {
    await server.stop();
  }
}

/**
 * Each client alternates between the three endpoints and goes through the requests of each. Clients start at different
 * requests.
 * @param {DendroServer} server @param {number} clients
 * @param {(now: number, completed: number) => boolean} isDone
 */
async function runClients(server, clients, isDone) {
  const requests = listCases().filter(({ pinnedProject }) => pinnedProject === undefined);
  const byEndpoint = ['logs.all', 'usage.api-counts', 'functions.invocation-stats'].map(endpoint =>
    requests.filter(request => request.endpoint === endpoint),
  );
  /** @type {number[]} */
  const samples = [];
  /** @type {Record<string, number>} */
  const errors = {};
  /** @param {number} first */
  const runClient = async first => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let index = first; !isDone(performance.now(), samples.length); index++) {
      const choices = byEndpoint[index % byEndpoint.length];
      const request = choices[Math.floor(index / byEndpoint.length) % choices.length];
      try {
        samples.push((await server.query(request, false, agent)).ms);
      } catch (error) {
        const message = messageOf(error).slice(0, 200);
        errors[message] = (errors[message] ?? 0) + 1;
        await sleep(10);
      }
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: clients }, (_, client) => runClient(client * 7)));
  return { samples, errors };
}

/** @param {{ samples: number[], errors: Record<string, number> }} measured */
function summarize({ samples, errors }) {
  return {
    requests: samples.length,
    p50: round(median(samples), 2),
    p95: round(percentile(samples, 0.95), 2),
    p99: round(percentile(samples, 0.99), 2),
    errors,
  };
}

/** @param {Record<string, number>} errors */
export function countErrors(errors) {
  return Object.values(errors).reduce((sum, each) => sum + each, 0);
}

/**
 * @param {SuiteResults['service']} result
 * @returns {Table[]}
 */
export function serviceTables({ perKind, startMs, residentMb, clients, one, many, withIntake, sent }) {
  /** @param {string} label @param {Latency} latency */
  const toRow = (label, { requests, p50, p95, p99, errors }) => [
    label,
    formatCount(requests),
    ...[p50, p95, p99].map(formatMs),
    countErrors(errors),
  ];
  return [
    {
      title: `Uncached requests to all three endpoints on ${formatCount(2 * perKind)} records, milliseconds`,
      header: ['clients', 'requests', 'p50', 'p95', 'p99', 'errors'],
      rows: [
        toRow('1', one),
        toRow(`${clients} (${many.requestsPerSecond} requests per second)`, many),
        toRow(`4, with ${formatCount(sent.recordsPerSecond)} incoming records per second`, withIntake),
      ],
    },
    {
      title: 'The server process',
      header: ['figure', 'value'],
      rows: [
        ['time from start to the first complete result, median, ms', Math.round(median(startMs))],
        ['resident memory, idle after start, MiB', residentMb.idle],
        [`peak resident memory with ${clients} clients, MiB`, residentMb.queries],
        ['peak resident memory with intake, MiB', residentMb.intake],
      ],
    },
  ];
}
