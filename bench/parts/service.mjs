// The service on the large platform: how soon it answers after a start, what it holds in memory, and how callers fare when
// there are many of them.
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY, serveDendro } from '../peers/dendro.mjs';
import { pickProjects } from '../records/projects.mjs';
import { count, ms } from '../report/format.mjs';
import { residentMb, residentPeakMb } from '../tools/process-figures.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';
import { listCases } from './cases.mjs';
import { sendCommand } from './intake.mjs';

const INTAKE_RATE = 20_000;
const IDLE_MS = 3000;

export async function measureService(
  stage,
  { starts, oneClientCalls, clients, seconds, intakeSeconds },
  report,
) {
  const { workplace, platform } = stage;
  const folder = await stage.largeFolder(report);
  const startMs = [];
  for (let turn = 1; turn <= starts; turn++) {
    report(`start ${turn} of ${starts}`);
    startMs.push(await timeStart(workplace, folder));
  }
  const server = await serveDendro(workplace, folder);
  try {
    await sleep(IDLE_MS);
    const idleMb = residentMb(server.pid);
    report('one client');
    const one = await askFor(server, { clients: 1, until: (_, calls) => calls >= oneClientCalls });
    report(`${clients} clients at once`);
    const start = performance.now();
    const many = await askFor(server, { clients, until: now => now - start > seconds * 1000 });
    const queryMb = residentPeakMb(server.pid);
    report(`${INTAKE_RATE.toLocaleString('en')} records a second come in beside`);
    let isOver = false;
    const sending = workplace
      .run(sendCommand(server.internalUrl, intakeSeconds, INTAKE_RATE), { DENDRO_API_KEY: API_KEY })
      .finally(() => {
        isOver = true;
      });
    const beside = await askFor(server, { clients: 4, until: () => isOver });
    const sent = await sending;
    return {
      commands: [server.command],
      perKind: platform.perKind,
      startMs,
      residentMb: { idle: idleMb, queries: queryMb, intake: residentPeakMb(server.pid) },
      sent,
      clients,
      one: describe(one),
      many: { ...describe(many), callsPerSecond: Math.round(many.samples.length / seconds) },
      beside: describe(beside),
    };
  } finally {
    await server.stop();
  }
}

/** From the start of the process to the last byte of the first answer that has records in it. */
async function timeStart(workplace, folder) {
  const call = {
    endpoint: 'logs.all',
    parameters: { project: pickProjects().largest, project_tier: 'PAYG' },
  };
  const start = performance.now();
  const server = await serveDendro(workplace, folder);
  try {
    for (;;) {
      const answer = await server.ask(call, true).catch(() => undefined); // 503 as long as the store opens
      if (answer !== undefined && answer.rows.length === 100) return round(performance.now() - start, 1);
      if (performance.now() - start > 60_000) throw new Error('no right answer within a minute');
      await sleep(5);
    }
  } finally {
    await server.stop();
  }
}

/** The three endpoints in turn, each with its cases in turn; every client starts at another place. */
async function askFor(server, { clients, until }) {
  const calls = listCases().filter(({ pinnedProject }) => pinnedProject === undefined);
  const mixed = ['logs.all', 'usage.api-counts', 'functions.invocation-stats'].map(endpoint =>
    calls.filter(call => call.endpoint === endpoint),
  );
  const samples = [];
  const errors = {};
  const runClient = async first => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let turn = first; !until(performance.now(), samples.length); turn++) {
      const among = mixed[turn % mixed.length];
      try {
        samples.push(
          (await server.ask(among[Math.floor(turn / mixed.length) % among.length], false, agent)).ms,
        );
      } catch (error) {
        errors[error.message.slice(0, 200)] = (errors[error.message.slice(0, 200)] ?? 0) + 1;
        await sleep(10);
      }
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: clients }, (_, client) => runClient(client * 7)));
  return { samples, errors };
}

function describe({ samples, errors }) {
  return {
    calls: samples.length,
    p50: round(median(samples), 2),
    p95: round(percentile(samples, 0.95), 2),
    p99: round(percentile(samples, 0.99), 2),
    errors,
  };
}

export function serviceTables(result) {
  const { perKind, startMs, residentMb: memory, clients, one, many, beside, sent } = result;
  const callers = (label, { calls, p50, p95, p99, errors }) => [
    label,
    count(calls),
    ...[p50, p95, p99].map(ms),
    Object.values(errors).reduce((sum, each) => sum + each, 0),
  ];
  return [
    {
      title: `Callers of all three endpoints in turn, uncached, on ${count(2 * perKind)} records (milliseconds)`,
      header: ['callers', 'calls', 'p50', 'p95', 'p99', 'errors'],
      rows: [
        callers('1', one),
        callers(`${clients}, ${many.callsPerSecond} calls a second`, many),
        callers(`4, beside ${count(sent.recordsPerSecond)} records a second coming in`, beside),
      ],
    },
    {
      title: 'The server’s process',
      header: ['what', 'figure'],
      rows: [
        ['start to the first right answer, median ms', Math.round(median(startMs))],
        ['resident memory, idle after the start, MB', memory.idle],
        [`resident memory at its most under the queries of ${clients} callers, MB`, memory.queries],
        ['resident memory at its most with intake beside, MB', memory.intake],
      ],
    },
  ];
}
