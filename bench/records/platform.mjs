// A platform: how many records of each kind, from when to when, with which steady projects among them. And its records, as
// a stream in whatever form a system wants to be fed.
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { allDone } from '../tools/all-done.mjs';
import { listSteadyProjects } from './projects.mjs';

export const KINDS = ['edge', 'function_edge'];
const DAY_MS = 86_400_000;
/** The oldest may not pass the retention while the run goes on. */
const SPARE_MS = 3_600_000;
/** Records reach beyond now, since the shortest windows have to stay full while the run goes on. */
const AHEAD_MS = 45 * 60_000;

/** The time is the same for all platforms of a run, so that the steady projects' records are, too. */
export function makePlatforms(smallestPerKind) {
  const startMs = Date.now() - 90 * DAY_MS + SPARE_MS;
  const span = { startMicros: startMs * 1000, spanMicros: (Date.now() + AHEAD_MS - startMs) * 1000 };
  const steady = listSteadyProjects(smallestPerKind);
  return perKind => ({ perKind, steady, ...span });
}

/** Records are made part by part; a part is as many as are sorted in memory at once. */
const PART_RECORDS = 200_000;

/** The last `share` of a platform's records, or all of them. */
export function chooseParts({ perKind }, share = 1) {
  const parts = 5 * Math.ceil(perKind / PART_RECORDS / 5);
  return { parts, first: Math.round(parts * (1 - share)) };
}

/**
 * Makes records in one process and hands them to `consume`, which is given a file descriptor to read them from and
 * answers when it has. No file is written. `report` is told how far it has come.
 */
export async function streamRecords(workplace, platform, { kind, shape, share }, consume, report) {
  const pipe = join(workplace.folder, `${kind}.${shape}`);
  execFileSync('mkfifo', [pipe]);
  const holder = openSync(pipe, 'r+'); // as long as it is open, no reader sees an end
  const reader = openSync(pipe, 'r');
  const options = { ...platform, ...chooseParts(platform, share), kind, shape, file: pipe };
  const whenReaderFails = new AbortController(); // nobody would read what the writer waits to write
  const writing = workplace
    .read([process.execPath, join(import.meta.dirname, 'write-records.mjs'), JSON.stringify(options)], {
      signal: whenReaderFails.signal,
      onOutput: text => report(`loading ${kind} records, ${text.trim().split('\n').at(-1)}`),
    })
    .finally(() => closeSync(holder));
  const reading = consume(reader).catch(error => {
    whenReaderFails.abort();
    throw error;
  });
  try {
    await allDone([reading, writing]);
  } finally {
    closeSync(reader);
    rmSync(pipe, { force: true });
  }
}
