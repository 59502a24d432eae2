// How many requests a second Dendro answers from its cache, against node:http alone with the same body in the same run.
// Server and load generator have a core each. The servers take turns, and every round starts them anew: two processes of the
// same program differ by up to a sixth, as their code was compiled and their memory laid.
import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../scripts/debian.mjs';
import { median, round } from '../tools/statistics.mjs';

const API_KEY = 'benchmark-api-key-0123456789';
const CONNECTIONS = 32;
const TARGET = '/api/endpoints/query/functions.invocation-stats?project=abcdefghijklmnopqrst&interval=1day';
const HEADERS = { 'X-API-KEY': API_KEY, 'Content-Type': 'application/json; charset=utf-8' };

const SERVERS = [
  { kind: 'bare', label: 'node:http alone, one buffer' },
  { kind: 'hit', label: 'Dendro, a cached hit: token, rules, cache, headers' },
];

export async function measureHttpLayer(
  { workplace, missing },
  { rounds, secondsPerRound, warmUpSeconds },
  report,
) {
  if (missing.wrk) return { leftOut: 'wrk is missing' };
  const { server: onServerCore, load: onLoadCore, note } = chooseCores();
  const serverFile = join(import.meta.dirname, 'http-layer-server.mjs');
  const servers = SERVERS.map(server => ({ ...server, requestsPerSecond: [], cpuMicros: [], p99Ms: [] }));
  const startCommand = kind => [
    ...onServerCore,
    ...[process.execPath, serverFile, kind, API_KEY, TARGET, join(workplace.folder, kind)],
  ];
  const loadCommand = (url, seconds) => [
    ...onLoadCore,
    ...['wrk', '-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--latency'],
    ...Object.entries(HEADERS).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    url,
  ];
  let bodyBytes;
  for (let turn = 1; turn <= rounds; turn++) {
    const started = [];
    try {
      for (const { kind } of servers) {
        const server = await workplace.start(startCommand(kind), /^ready: (.*)/);
        started.push({ kind, server, url: `${server.word}${TARGET}` });
      }
      bodyBytes = await checkBodies(started);
      for (const { url } of started) await putLoad(loadCommand(url, warmUpSeconds));
      for (const [index, { kind, server, url }] of started.entries()) {
        const cpuBefore = await cpuMicrosOf(server.child);
        const load = await putLoad(loadCommand(url, secondsPerRound));
        const { requestsPerSecond, cpuMicros, p99Ms } = servers[index];
        cpuMicros.push(round(((await cpuMicrosOf(server.child)) - cpuBefore) / load.requests, 1));
        requestsPerSecond.push(load.requestsPerSecond);
        p99Ms.push(load.p99Ms);
        report(
          `round ${turn} of ${rounds}, ${kind}: ${Math.round(load.requestsPerSecond)} requests a second`,
        );
      }
    } finally {
      await Promise.all(started.map(({ server }) => server.stop()));
      for (const { kind } of started) rmSync(join(workplace.folder, kind), { recursive: true, force: true });
    }
  }
  return {
    commands: [
      ...servers.map(({ kind }) => workplace.show(startCommand(kind))),
      workplace.show(loadCommand(TARGET, secondsPerRound)),
    ],
    cores: note,
    connections: CONNECTIONS,
    bodyBytes,
    rounds,
    secondsPerRound,
    servers,
  };
}

/** All servers have to answer the same bytes, or the comparison means nothing. */
async function checkBodies(started) {
  const bodies = [];
  for (const { kind, url } of started) {
    const response = await fetch(url, { headers: HEADERS });
    if (response.status !== 200) throw new Error(`the server ${kind} answered ${response.status}`);
    bodies.push(await response.text());
  }
  if (new Set(bodies).size !== 1) throw new Error('the servers do not answer the same body');
  return Buffer.byteLength(bodies[0]);
}

/** What the server's process has used of a core so far. Other programs on the machine disturb this least. */
function cpuMicrosOf(child) {
  return new Promise(resolve => {
    child.once('message', ({ user, system }) => resolve(user + system));
    child.send('cpu');
  });
}

async function putLoad(command) {
  const [program, ...args] = command;
  const { stdout } = await promisify(execFile)(program, args);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk met errors:\n${stdout}`);
  const requestsPerSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  const [, p99, unit] = /\b99%\s+([\d.]+)(us|ms|s)\b/.exec(stdout) ?? [];
  if (!(requestsPerSecond > 0 && requests > 0) || p99 === undefined)
    throw new Error(`wrk said nothing of use:\n${stdout}`);
  return { requests, requestsPerSecond, p99Ms: Number(p99) * { us: 0.001, ms: 1, s: 1000 }[unit] };
}

/** Two cores that this process may use, one for each side. */
function chooseCores() {
  const [first, second] = allowedCores();
  if (second === undefined || findProgram('taskset') === undefined)
    return { server: [], load: [], note: 'not pinned: taskset and two cores are needed for that' };
  return {
    server: ['taskset', '-c', first],
    load: ['taskset', '-c', second],
    note: `server on core ${first}, wrk on core ${second}`,
  };
}

/** Linux lists them as 0-3,8; elsewhere none are known. */
function allowedCores() {
  if (process.platform !== 'linux') return [];
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap(range => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => String(from + index));
  });
}

export function layerTables({ servers, bodyBytes, connections, cores }) {
  return [
    {
      title: `Requests a second of a ${bodyBytes} byte answer, ${connections} connections, ${cores}`,
      header: ['server', 'requests/s', 'lowest', 'highest', 'of bare', 'core µs', 'p99 ms'],
      rows: servers.map(server => [
        server.label,
        Math.round(median(server.requestsPerSecond)),
        Math.round(Math.min(...server.requestsPerSecond)),
        Math.round(Math.max(...server.requestsPerSecond)),
        `${(100 * shareOfBare(servers, server)).toFixed(1)} %`,
        median(server.cpuMicros).toFixed(1),
        median(server.p99Ms).toFixed(2),
      ]),
    },
  ];
}

/** The median of the quotients within each round. */
export function shareOfBare([bare], { requestsPerSecond }) {
  return median(requestsPerSecond.map((value, index) => value / bare.requestsPerSecond[index]));
}
