// How fast logs come in: over HTTP, from a file, and what queries notice of it.
import { openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { askServer } from './ask-server.mjs';
import { listProjects } from './seed-records.mjs';
import { LINE_BYTES, makeLines } from './sent-records.mjs';
import { median, percentile, round } from './statistics.mjs';

const root = join(import.meta.dirname, '..');
const API_KEY = 'benchmark-api-key-0123456789';
const ENV = { DENDRO_API_KEY: API_KEY };
/** Half of the 40,000 records a second that the intake is meant to take. */
const BESIDE_RATE = 20_000;

export async function measureIntake(workplace, { seconds, fileRecords, fileRounds, queries }, report) {
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
  const direct = [process.execPath, join(root, 'bench/read-json-process.mjs'), folder, file];
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
  const serve = [
    ...[process.execPath, join(root, 'bin/dendro'), 'serve', '--data', join(workplace.folder, 'taken')],
    ...['--port', '0', '--internal-port', '0'],
  ];
  let publicUrl;
  const server = await workplace.start(serve, /^internal: listening on (.*)/, ENV, line => {
    publicUrl ??= /^public: listening on (.*)/.exec(line)?.[1]; // it comes before the other
  });
  const internalUrl = server.word;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = (duration, rate) => [
    ...[process.execPath, join(root, 'bench/send-logs.mjs'), internalUrl, String(duration), String(rate)],
  ];
  const ask = async until => {
    const [project] = listProjects();
    const target = `${publicUrl}/api/endpoints/query/logs.all?project=${project}&project_tier=FREE`;
    const samples = [];
    while (until(samples.length)) samples.push((await askServer(agent, target, API_KEY)).ms);
    return {
      p50: round(percentile(samples, 0.5), 2),
      p95: round(percentile(samples, 0.95), 2),
      calls: samples.length,
    };
  };
  try {
    report('sending as fast as it is taken');
    await workplace.run(send(3, 0), ENV); // what is compiled on the way is no part of the figure
    const before = cpuMs(server.child.pid);
    const fastest = await workplace.run(send(seconds, 0), ENV);
    const corePerRecord = round(((cpuMs(server.child.pid) - before) * 1000) / fastest.acknowledged, 1);
    report('asking while nothing comes in');
    await untilFolded(internalUrl);
    const quiet = await ask(count => count < queries);
    report(`asking while ${BESIDE_RATE.toLocaleString('en')} records a second come in`);
    let isSending = true;
    const sending = workplace.run(send(seconds, BESIDE_RATE), ENV).finally(() => {
      isSending = false;
    });
    const beside = await ask(() => isSending);
    const besideSent = await sending;
    return {
      commands: [serve, send(seconds, 0), send(seconds, BESIDE_RATE)].map(workplace.show),
      http: { ...fastest, coreMicrosPerRecord: corePerRecord },
      logsAll: { quiet, beside, ratioP95: round(beside.p95 / quiet.p95, 2), sent: besideSent },
      residentMb: residentPeakMb(server.child.pid),
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

/** Time on a core that a process used, in milliseconds (Linux counts in hundredths of a second). */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function residentPeakMb(pid) {
  return Math.round(
    Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
  );
}

export const INTAKE_HEADER = ['logs in', 'measured', 'compared with', 'ratio'];

export function intakeRows({ http, logsAll, residentMb, file }) {
  const count = value => Math.round(value).toLocaleString('en');
  return [
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
  ];
}
