// Suite `intake`: how many records per second arrive over HTTP and from a file, and how much intake slows queries down.
import { openSync, rmSync, writeSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listProjects } from '../records/dataset.mjs';
import { createLines, LINE_BYTES } from '../records/sent-records.mjs';
import { formatCount } from '../report/tables.mjs';
import { API_KEY, serveDendro } from '../systems/dendro.mjs';
import { median, percentile, round } from '../tools/statistics.mjs';
import { readCpuMs, readPeakResidentMiB } from '../tools/system.mjs';

/** @import { Context, Report, SuiteResults, Table, Workspace } from '../types.ts' */

const dendro = join(import.meta.dirname, '..', '..', 'bin', 'dendro');
const ENV = { DENDRO_API_KEY: API_KEY };
/** Below the maximum rate, so that queries have CPU time left. */
const MODERATE_RATE = 20_000;
const LINES_PER_WRITE = 50_000;
/** If many records arrive, a memtable is flushed at about this size. */
const RECORDS_PER_FLUSH = 120_000;

/**
 * @param {Context} context
 * @param {{ seconds: number, fileRecords: number, fileRounds: number, requests: number }} sizes @param {Report} report
 */
export async function measureIntake({ workspace }, { seconds, fileRecords, fileRounds, requests }, report) {
  const file = join(workspace.directory, 'sent.ndjson');
  writeNdjsonFile(file, fileRecords, report);
  const fileFigures = await measureFile(workspace, file, fileRecords, fileRounds, report);
  rmSync(file);
  const serverFigures = await measureServer(workspace, seconds, requests, report);
  const otlp = await measureOtlp(workspace, seconds, report);
  const verification = await measureVerification(workspace, fileRecords, report);
  return { lineBytes: LINE_BYTES, ...serverFigures, otlp, file: fileFigures, verification };
}

/**
 * The CPU time of the verification, per record. Stores about half of `records`, or one flush if that is more.
 * @param {Workspace} workspace @param {number} records @param {Report} report
 */
async function measureVerification(workspace, records, report) {
  report('verifying flushed records');
  const script = join(import.meta.dirname, 'verification-process.mjs');
  const directory = join(workspace.directory, 'verified');
  const flushes = Math.max(1, Math.floor(records / 2 / RECORDS_PER_FLUSH));
  const command = [process.execPath, script, directory, String(flushes), String(RECORDS_PER_FLUSH)];
  const result = await workspace.readResult(command);
  rmSync(directory, { recursive: true });
  return {
    command: workspace.describe(command),
    ...result,
    cpuMicrosPerRecord: round(result.cpuMicrosPerRecord, 2),
  };
}

/** @param {string} path @param {number} records @param {Report} report */
function writeNdjsonFile(path, records, report) {
  const descriptor = openSync(path, 'w');
  for (let written = 0; written < records; written += LINES_PER_WRITE) {
    writeSync(descriptor, createLines(Math.min(LINES_PER_WRITE, records - written)).join(''));
    report(`writing a file: ${formatCount(written)} of ${formatCount(records)} records`);
  }
}

/**
 * Alternates between `dendro ingest`, timed from start to end of the process, and DuckDB alone, timed for the statement
 * only. Each loads into an empty store.
 * @param {Workspace} workspace @param {string} file @param {number} records @param {number} rounds
 * @param {Report} report
 */
async function measureFile(workspace, file, records, rounds, report) {
  const directory = join(workspace.directory, 'loaded');
  const ingest = [process.execPath, dendro, 'ingest', '--source', 'edge', '--data', directory, file];
  const readJson = [process.execPath, join(import.meta.dirname, 'read-json-process.mjs'), directory, file];
  const clear = () => rmSync(directory, { recursive: true, force: true });
  /** @type {number[]} */
  const ingestPerSecond = [];
  /** @type {number[]} */
  const readJsonPerSecond = [];
  for (let index = 1; index <= rounds; index++) {
    clear();
    const start = performance.now();
    await workspace.readOutput(ingest);
    ingestPerSecond.push(Math.round(records / ((performance.now() - start) / 1000)));
    clear();
    const { ms } = await workspace.readResult(readJson);
    readJsonPerSecond.push(Math.round(records / (ms / 1000)));
    report(`file: round ${index} of ${rounds}`);
  }
  clear();
  return {
    records,
    rounds,
    commands: [ingest, readJson].map(workspace.describe),
    ingestPerSecond,
    readJsonPerSecond,
    ratio: round(median(ingestPerSecond.map((rate, index) => rate / readJsonPerSecond[index]))),
  };
}

/** @param {Workspace} workspace @param {number} seconds @param {number} requests @param {Report} report */
async function measureServer(workspace, seconds, requests, report) {
  const server = await serveDendro(workspace, join(workspace.directory, 'received'), { flags: [] });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  /** @param {number} duration @param {number} rate */
  const sendCommand = (duration, rate) => createSendCommand(server.internalUrl, duration, rate);
  const [project] = listProjects();
  const request = { endpoint: 'logs.all', parameters: { project, project_tier: 'FREE' } };
  /** @param {(count: number) => boolean} isDone */
  const measureLatency = async isDone => {
    const samples = [];
    while (!isDone(samples.length)) samples.push((await server.query(request, false, agent)).ms);
    return {
      p50: round(percentile(samples, 0.5), 2),
      p95: round(percentile(samples, 0.95), 2),
      requests: samples.length,
    };
  };
  try {
    report('sending at the maximum rate');
    await workspace.readResult(sendCommand(3, 0), ENV); // warm-up: the JIT compiles the code path
    const cpuBefore = readCpuMs(server.pid);
    const maximum = await workspace.readResult(sendCommand(seconds, 0), ENV);
    const cpuMicrosPerRecord = ((readCpuMs(server.pid) - cpuBefore) * 1000) / maximum.acknowledged;
    report('querying without intake');
    await waitUntilApplied(server.internalUrl);
    const withoutIntake = await measureLatency(count => count >= requests);
    report(`querying with ${formatCount(MODERATE_RATE)} incoming records per second`);
    let hasSent = false;
    const sending = workspace.readResult(sendCommand(seconds, MODERATE_RATE), ENV).finally(() => {
      hasSent = true;
    });
    const withIntake = await measureLatency(() => hasSent);
    const sent = await sending;
    return {
      commands: [
        server.command,
        ...[sendCommand(seconds, 0), sendCommand(seconds, MODERATE_RATE)].map(workspace.describe),
      ],
      http: { ...maximum, cpuMicrosPerRecord: round(cpuMicrosPerRecord, 1) },
      logsAll: { withoutIntake, withIntake, ratioP95: round(withIntake.p95 / withoutIntake.p95, 2), sent },
      residentMb: readPeakResidentMiB(server.pid),
    };
  } finally {
    agent.destroy();
    await server.stop();
  }
}

/**
 * On a server of its own, so that it does not compete with the compaction of other records.
 * @param {Workspace} workspace @param {number} seconds @param {Report} report
 */
async function measureOtlp(workspace, seconds, report) {
  const server = await serveDendro(workspace, join(workspace.directory, 'otlp'), { flags: [] });
  /** @param {number} duration */
  const sendCommand = duration => [...createSendCommand(server.internalUrl, duration, 0), 'otlp'];
  try {
    report('sending OTLP at the maximum rate');
    await workspace.readResult(sendCommand(3), ENV); // warm-up, as for NDJSON
    const result = await workspace.readResult(sendCommand(seconds), ENV);
    return { command: workspace.describe(sendCommand(seconds)), ...result };
  } finally {
    await server.stop();
  }
}

/** Waits until the store has all records of the spool. @param {string} internalUrl */
async function waitUntilApplied(internalUrl) {
  for (;;) {
    const response = await fetch(`${internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
    if (/^dendro_intake_queue_bytes 0$/m.test(await response.text())) return;
    await sleep(200);
  }
}

/**
 * The command that sends records to a server. Rate 0 is the maximum rate.
 * @param {string} internalUrl @param {number} seconds @param {number} rate
 */
export function createSendCommand(internalUrl, seconds, rate) {
  const script = join(import.meta.dirname, 'send-logs-process.mjs');
  return [process.execPath, script, internalUrl, String(seconds), String(rate)];
}

/**
 * @param {SuiteResults['intake']} result
 * @returns {Table[]}
 */
export function intakeTables({ lineBytes, http, otlp, logsAll, residentMb, file, verification }) {
  return [
    {
      title: `Records of ${lineBytes} bytes; 8 connections over HTTP, ${formatCount(file.records)} records from a file`,
      header: ['figure', 'value', 'compared with', 'ratio'],
      rows: [
        ['over HTTP in batches of 1,000, records per second', formatCount(http.recordsPerSecond), '', ''],
        // Results of earlier versions have no OTLP.
        ...(otlp === undefined
          ? []
          : [
              [
                'over OTLP/HTTP as protobuf, in batches of 1,000, records per second',
                formatCount(otlp.recordsPerSecond),
                '',
                '',
              ],
            ]),
        ['CPU time of the server over HTTP, µs per record', http.cpuMicrosPerRecord, '', ''],
        // Results of earlier versions have no verification.
        ...(verification === undefined
          ? []
          : [
              [
                'CPU time to verify flushed records, µs per record',
                verification.cpuMicrosPerRecord,
                `${http.cpuMicrosPerRecord} for all of the intake`,
                round(verification.cpuMicrosPerRecord / http.cpuMicrosPerRecord),
              ],
            ]),
        [
          'dendro ingest from a file, records per second',
          formatCount(median(file.ingestPerSecond)),
          `${formatCount(median(file.readJsonPerSecond))} with DuckDB’s read_json`,
          file.ratio,
        ],
        [
          `logs.all p95 with ${formatCount(logsAll.sent.recordsPerSecond)} incoming records per second, ms`,
          logsAll.withIntake.p95,
          `${logsAll.withoutIntake.p95} without intake`,
          logsAll.ratioP95,
        ],
        ['peak resident memory, MiB', residentMb, '', ''],
      ],
    },
  ];
}
