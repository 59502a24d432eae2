// How fast logs come in: over HTTP, from a file, and what queries notice of it.
import { openSync, rmSync, writeSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { API_KEY, serveDendro } from '../peers/dendro.mjs';
import { listProjects } from '../records/projects.mjs';
import { LINE_BYTES, makeLines } from '../records/sent-records.mjs';
import { count } from '../report/format.mjs';
import { cpuMs, residentPeakMb } from '../tools/process-figures.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';

const root = join(import.meta.dirname, '..', '..');
const ENV = { DENDRO_API_KEY: API_KEY };
/** Half of the 40,000 records a second that the intake is meant to take. */
const BESIDE_RATE = 20_000;

export async function measureIntake({ workplace }, { seconds, fileRecords, fileRounds, queries }, report) {
  const file = writeFile(join(workplace.folder, 'sent.ndjson'), fileRecords, report);
  const files = await measureFiles(workplace, file, fileRecords, fileRounds, report);
  rmSync(file);
  const served = await measureServer(workplace, seconds, queries, report);
  return { lineBytes: LINE_BYTES, ...served, file: { records: fileRecords, rounds: fileRounds, ...files } };
}

function writeFile(path, records, report) {
  const descriptor = openSync(path, 'w');
  for (let written = 0; written < records; written += 50_000) {
    writeSync(descriptor, makeLines(Math.min(50_000, records - written)).join(''));
    report(`writing a file of ${records.toLocaleString('en')} records: ${written.toLocaleString('en')}`);
  }
  return path;
}

/** In turns, each into an empty store: `dendro ingest`, from its start to its end, and DuckDB alone, the statement only. */
async function measureFiles(workplace, file, records, rounds, report) {
  const folder = join(workplace.folder, 'loaded');
  const ingest = [
    process.execPath,
    join(root, 'bin/dendro'),
    'ingest',
    '--source',
    'edge',
    '--data',
    folder,
    file,
  ];
  const direct = [process.execPath, join(import.meta.dirname, 'read-json-process.mjs'), folder, file];
  const samples = { ingest: [], direct: [] };
  for (let round = 1; round <= rounds; round++) {
    rmSync(folder, { recursive: true, force: true });
    const start = performance.now();
    await workplace.run(ingest);
    samples.ingest.push(records / ((performance.now() - start) / 1000));
    rmSync(folder, { recursive: true, force: true });
    const { ms } = await workplace.run(direct);
    samples.direct.push(records / (ms / 1000));
    report(`files: round ${round} of ${rounds}`);
  }
  rmSync(folder, { recursive: true, force: true });
  return {
    commands: [ingest, direct].map(workplace.show),
    ingestPerSecond: samples.ingest.map(Math.round),
    readJsonPerSecond: samples.direct.map(Math.round),
    ratio: round(median(samples.ingest.map((rate, index) => rate / samples.direct[index]))),
  };
}

async function measureServer(workplace, seconds, queries, report) {
  const server = await serveDendro(workplace, join(workplace.folder, 'taken'), { flags: [] });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = (duration, rate) => sendCommand(server.internalUrl, duration, rate);
  const [project] = listProjects();
  const call = { endpoint: 'logs.all', parameters: { project, project_tier: 'FREE' } };
  const ask = async until => {
    const samples = [];
    while (until(samples.length)) samples.push((await server.ask(call, false, agent)).ms);
    return {
      p50: round(percentile(samples, 0.5), 2),
      p95: round(percentile(samples, 0.95), 2),
      calls: samples.length,
    };
  };
  try {
    report('sending as fast as it is taken');
    await workplace.run(send(3, 0), ENV); // what is compiled on the way is no part of the figure
    const before = cpuMs(server.pid);
    const fastest = await workplace.run(send(seconds, 0), ENV);
    const corePerRecord = round(((cpuMs(server.pid) - before) * 1000) / fastest.acknowledged, 1);
    report('asking while nothing comes in');
    await untilFolded(server.internalUrl);
    const quiet = await ask(count => count < queries);
    report(`asking while ${BESIDE_RATE.toLocaleString('en')} records a second come in`);
    let isSending = true;
    const sending = workplace.run(send(seconds, BESIDE_RATE), ENV).finally(() => {
      isSending = false;
    });
    const beside = await ask(() => isSending);
    const besideSent = await sending;
    return {
      commands: [server.command, ...[send(seconds, 0), send(seconds, BESIDE_RATE)].map(workplace.show)],
      http: { ...fastest, coreMicrosPerRecord: corePerRecord },
      logsAll: { quiet, beside, ratioP95: round(beside.p95 / quiet.p95, 2), sent: besideSent },
      residentMb: residentPeakMb(server.pid),
    };
  } finally {
    agent.destroy();
    await server.stop();
  }
}

async function untilFolded(internalUrl) {
  for (;;) {
    const text = await (await fetch(`${internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } })).text();
    if (/^dendro_intake_queue_bytes 0$/m.test(text)) return;
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}

export function sendCommand(internalUrl, seconds, rate) {
  return [
    process.execPath,
    join(import.meta.dirname, 'send-logs.mjs'),
    internalUrl,
    String(seconds),
    String(rate),
  ];
}

export function intakeTables({ lineBytes, http, logsAll, residentMb, file }) {
  return [
    {
      title: `Logs in: records of ${lineBytes} bytes, 8 connections, files of ${count(file.records)} records`,
      header: ['logs in', 'measured', 'compared with', 'ratio'],
      rows: [
        [
          'over HTTP, batches of 1,000: records a second',
          count(http.recordsPerSecond),
          `${http.coreMicrosPerRecord} core µs`,
          '',
        ],
        [
          'dendro ingest: records a second',
          count(median(file.ingestPerSecond)),
          `${count(median(file.readJsonPerSecond))} read_json`,
          file.ratio,
        ],
        [
          `logs.all p95 ms beside ${count(logsAll.sent.recordsPerSecond)} records a second`,
          logsAll.beside.p95,
          `${logsAll.quiet.p95} quiet`,
          logsAll.ratioP95,
        ],
        ['resident memory at its most, MB', residentMb, '', ''],
      ],
    },
  ];
}
