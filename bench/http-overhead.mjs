// What an answer over HTTP costs beyond the SQL behind it. Two processes hold two copies of one store file: the real
// server, and one that runs the same SQL with the same values directly. They take turns, so that never more than one
// of them works, and whatever disturbs the machine disturbs both.
import { cpSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { loadCatalog } from '../dist/endpoint/catalog.js';
import { bindParameters, completeValues } from '../dist/endpoint/parameters.js';
import { askServer } from './ask-server.mjs';
import { listCases } from './cases.mjs';
import { seedStore } from './seed-records.mjs';
import { median, percentile, round } from './statistics.mjs';

const root = join(import.meta.dirname, '..');
const API_KEY = 'benchmark-api-key-0123456789';
/** As `dendro serve` has them when no flag says otherwise; bin/dendro sets the size of the thread pool. */
const MEMORY_LIMIT = '500MB';
const THREAD_POOL = { UV_THREADPOOL_SIZE: '16' };

export async function measureHttpOverhead(workplace, { recordsPerKind, warmUps, rounds }, report) {
  const servedFolder = join(workplace.folder, 'served');
  const directFolder = join(workplace.folder, 'direct');
  await seedStore(
    {
      dataFolder: servedFolder,
      memoryLimit: MEMORY_LIMIT,
      queryConcurrency: 1,
      queryQueueLength: 1,
      queryTimeoutSeconds: 600,
    },
    recordsPerKind,
    text => report(`seeding, ${text}`),
  );
  cpSync(servedFolder, directFolder, { recursive: true });

  const serveCommand = [
    ...[process.execPath, join(root, 'bin', 'dendro'), 'serve', '--data', servedFolder],
    ...['--port', '0', '--internal-port', '0', '--memory-limit', MEMORY_LIMIT, '--cache-bytes', '0'],
  ];
  const directCommand = [
    process.execPath,
    join(root, 'bench', 'direct-process.mjs'),
    directFolder,
    MEMORY_LIMIT,
  ];
  const server = await workplace.start(serveCommand, /^public: listening on (.*)/, {
    DENDRO_API_KEY: API_KEY,
  });
  const direct = await workplace.start(directCommand, /^ready: (.*)/, THREAD_POOL);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const catalog = loadCatalog({ builtIn: join(root, 'endpoints'), own: undefined }, 'duckdb');
  const cases = [];
  try {
    for (const [index, { label, endpoint, parameters }] of listCases().entries()) {
      const { definition, query } = catalog.find(endpoint);
      const given = new URLSearchParams(parameters);
      const url = `${server.word}/api/endpoints/query/${endpoint}?${given}`;
      const runDirect = () => askDirect(direct.child, query.sql, bindParameters(definition, given));
      const runHttp = () => askServer(agent, url, API_KEY);
      const samples = await takeTurns(runDirect, runHttp, warmUps, rounds);
      cases.push({ label, endpoint, parameters, ...samples });
      report(`${index + 1} of ${listCases().length} calls measured, ${label}`);
    }
    const floor = await takeTurns(
      undefined,
      () => askServer(agent, `${server.word}/health`, API_KEY),
      warmUps,
      rounds,
    );
    return {
      commands: [serveCommand, directCommand].map(workplace.show),
      recordsPerKind,
      rounds,
      cases,
      health: floor,
    };
  } finally {
    agent.destroy();
    await Promise.all([server.stop(), direct.stop()]);
  }
}

/** Who goes first changes with every round. */
async function takeTurns(runDirect, runHttp, warmUps, rounds) {
  const directMs = [];
  const httpMs = [];
  let rowCount;
  let bytes;
  const takeDirect = async () => {
    if (runDirect === undefined) return;
    const answer = await runDirect();
    directMs.push(round(answer.ms));
    rowCount = answer.rowCount;
  };
  const takeHttp = async () => {
    const answer = await runHttp();
    httpMs.push(round(answer.ms));
    bytes = answer.bytes;
  };
  for (let turn = 0; turn < warmUps + rounds; turn++) {
    for (const take of turn % 2 === 0 ? [takeDirect, takeHttp] : [takeHttp, takeDirect]) await take();
  }
  return { rowCount, bytes, directMs: directMs.slice(warmUps), httpMs: httpMs.slice(warmUps) };
}

function askDirect(child, sql, bound) {
  const values = completeValues(bound, BigInt(Date.now()) * 1000n, undefined);
  const wire = Object.fromEntries(
    Object.entries(values).map(([name, { type, value }]) => [
      name,
      { type, value: typeof value === 'bigint' ? String(value) : value },
    ]),
  );
  return new Promise((resolve, reject) => {
    child.once('message', answer =>
      answer.error === undefined ? resolve(answer) : reject(new Error(answer.error)),
    );
    child.send({ sql, values: wire });
  });
}

export function overheadRows({ cases, health }) {
  return [
    ...cases.map(({ label, rowCount, bytes, directMs, httpMs }) => [
      label,
      rowCount,
      bytes,
      median(directMs).toFixed(2),
      median(httpMs).toFixed(2),
      percentile(directMs, 0.95).toFixed(2),
      percentile(httpMs, 0.95).toFixed(2),
      (median(httpMs) - median(directMs)).toFixed(2),
      (median(httpMs) / median(directMs)).toFixed(2),
    ]),
    [
      'GET /health, no SQL',
      '',
      health.bytes,
      '',
      median(health.httpMs).toFixed(2),
      '',
      percentile(health.httpMs, 0.95).toFixed(2),
      '',
      '',
    ],
  ];
}

export const OVERHEAD_HEADER = [
  'call',
  'rows',
  'bytes',
  'SQL ms',
  'HTTP ms',
  'SQL p95',
  'HTTP p95',
  'more ms',
  'ratio',
];
