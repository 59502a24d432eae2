// Suite `http-layer`: requests per second of a cache hit, compared with a bare node:http server that sends the same body.
// The server and the load generator have one core each. Every round starts both servers again, because the speed of two processes
// of the same program differs by up to a sixth, depending on how their code was compiled and their memory was placed.
import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../scripts/debian.mjs';
import { API_KEY } from '../systems/dendro.mjs';
import { median, round } from '../tools/statistics.mjs';

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Context, Report, SuiteResults, Table } from '../types.ts' */

/**
 * @typedef {{
 *   variant: string, label: string, requestsPerSecond: number[], cpuMicros: number[], p99Ms: number[]
 * }} ServerFigures
 */

const CONNECTIONS = 32;
const TARGET = '/api/endpoints/query/functions.invocation-stats?project=abcdefghijklmnopqrst&interval=1day';
const HEADERS = { 'X-API-KEY': API_KEY, 'Content-Type': 'application/json; charset=utf-8' };

const SERVERS = [
  { variant: 'bare', label: 'bare node:http, one buffer' },
  { variant: 'hit', label: 'Dendro, cache hit: token, parameters, cache, headers' },
];

/**
 * @param {Context} context
 * @param {{ rounds: number, secondsPerRound: number, warmUpSeconds: number }} sizes @param {Report} report
 */
export async function measureHttpLayer({ workspace }, { rounds, secondsPerRound, warmUpSeconds }, report) {
  const cores = chooseCores();
  const serverFile = join(import.meta.dirname, 'http-layer-server.mjs');
  /** @type {ServerFigures[]} */
  const servers = SERVERS.map(server => ({ ...server, requestsPerSecond: [], cpuMicros: [], p99Ms: [] }));
  /** @param {string} variant */
  const dataDirectoryOf = variant => join(workspace.directory, variant);
  /** @param {string} variant */
  const serverCommand = variant => [
    ...cores.server,
    ...[process.execPath, serverFile, variant, API_KEY, TARGET, dataDirectoryOf(variant)],
  ];
  /** @param {string} url @param {number} seconds */
  const loadCommand = (url, seconds) => [
    ...cores.load,
    ...['wrk', '-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--latency'],
    ...Object.entries(HEADERS).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    url,
  ];
  let bodyBytes = 0;
  for (let index = 1; index <= rounds; index++) {
    const started = [];
    try {
      for (const figures of servers) {
        const { child, readyText, stop } = await workspace.start(
          serverCommand(figures.variant),
          /^ready: (.*)/,
        );
        started.push({ figures, child, stop, url: `${readyText}${TARGET}` });
      }
      bodyBytes = await checkBodies(started.map(({ url }) => url));
      for (const { url } of started) await runWrk(loadCommand(url, warmUpSeconds));
      for (const { figures, child, url } of started) {
        const cpuBefore = await readCpuMicros(child);
        const load = await runWrk(loadCommand(url, secondsPerRound));
        figures.cpuMicros.push(round(((await readCpuMicros(child)) - cpuBefore) / load.requests, 1));
        figures.requestsPerSecond.push(load.requestsPerSecond);
        figures.p99Ms.push(load.p99Ms);
        const rate = Math.round(load.requestsPerSecond);
        report(`round ${index} of ${rounds}, ${figures.variant}: ${rate} requests per second`);
      }
    } finally {
      await Promise.all(started.map(({ stop }) => stop()));
      for (const { variant } of servers) rmSync(dataDirectoryOf(variant), { recursive: true, force: true });
    }
  }
  return {
    commands: [
      ...servers.map(({ variant }) => workspace.describe(serverCommand(variant))),
      workspace.describe(loadCommand(TARGET, secondsPerRound)),
    ],
    cores: cores.note,
    connections: CONNECTIONS,
    bodyBytes,
    rounds,
    secondsPerRound,
    servers,
  };
}

/** Fails unless all servers send the same body. Returns its length. @param {string[]} urls */
async function checkBodies(urls) {
  const bodies = [];
  for (const url of urls) {
    const response = await fetch(url, { headers: HEADERS });
    if (response.status !== 200) throw new Error(`${url} returned status ${response.status}`);
    bodies.push(await response.text());
  }
  if (new Set(bodies).size !== 1) throw new Error('the two servers return different bodies');
  return Buffer.byteLength(bodies[0]);
}

/**
 * CPU time of the server process so far. Other programs on the machine affect it less than requests per second.
 * @param {ChildProcess} child
 * @returns {Promise<number>}
 */
function readCpuMicros(child) {
  return new Promise(resolve => {
    child.once('message', (/** @type {any} */ { user, system }) => resolve(user + system));
    child.send('cpu');
  });
}

/** @param {string[]} command */
async function runWrk(command) {
  const [program, ...args] = command;
  const { stdout } = await promisify(execFile)(program, args);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk reported errors:\n${stdout}`);
  const requestsPerSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  const [, p99, unit] = /\b99%\s+([\d.]+)(us|ms|s)\b/.exec(stdout) ?? [];
  if (!(requestsPerSecond > 0 && requests > 0) || p99 === undefined)
    throw new Error(`the output of wrk has no figures:\n${stdout}`);
  const msPerUnit = { us: 0.001, ms: 1, s: 1000 }[unit] ?? Number.NaN;
  return { requests, requestsPerSecond, p99Ms: Number(p99) * msPerUnit };
}

/** Command prefixes that pin the server and the load generator to one core each, where that is possible. */
function chooseCores() {
  const [first, second] = listAllowedCores();
  if (second === undefined || findProgram('taskset') === undefined)
    return { server: [], load: [], note: 'not pinned to cores (needs taskset and two cores)' };
  return {
    server: ['taskset', '-c', first],
    load: ['taskset', '-c', second],
    note: `server on core ${first}, wrk on core ${second}`,
  };
}

/** Reads lists such as 0-3,8 on Linux. Returns an empty list elsewhere. */
function listAllowedCores() {
  if (process.platform !== 'linux') return [];
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap(range => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => String(from + index));
  });
}

/**
 * @param {SuiteResults['http-layer']} result
 * @returns {Table[]}
 */
export function httpLayerTables({ servers, bodyBytes, connections, cores }) {
  return [
    {
      title: `A response of ${bodyBytes} bytes on ${connections} connections, ${cores}`,
      header: ['server', 'requests/s', 'lowest', 'highest', 'of bare', 'CPU µs/request', 'p99 ms'],
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

/**
 * Requests per second divided by those of the bare server: the median of the ratios of all rounds.
 * @param {Pick<ServerFigures, 'requestsPerSecond'>[]} servers the bare server first
 * @param {Pick<ServerFigures, 'requestsPerSecond'>} server
 */
export function shareOfBare([bare], { requestsPerSecond }) {
  return median(requestsPerSecond.map((value, index) => value / bare.requestsPerSecond[index]));
}
