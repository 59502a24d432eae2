// Generates the records of a data set in another process and streams them to a system, without a file in between.
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { waitForAll } from '../tools/workspace.mjs';

/** @import { Dataset, Report, Workspace } from '../types.ts' */

/** Records are generated and sorted in memory in chunks of at most this size. */
const CHUNK_RECORDS = 200_000;

/**
 * The number of chunks of the whole data set, and the first of those that hold the newest `share` of the records.
 * @param {Dataset} dataset
 */
function chooseChunks({ perKind }, share = 1) {
  const chunks = 5 * Math.ceil(perKind / CHUNK_RECORDS / 5); // a multiple of 5, so that a fifth is a whole number of chunks
  return { chunks, first: Math.round(chunks * (1 - share)) };
}

/**
 * Streams records in order of time. `consume` gets a file descriptor and reads it to its end.
 * @param {Workspace} workspace @param {Dataset} dataset
 * @param {{ kind: string, format: 'ndjson' | 'clickhouse' | 'postgres', share?: number }} options
 * @param {(descriptor: number) => Promise<unknown>} consume @param {Report} report
 */
export async function streamRecords(workspace, dataset, { kind, format, share }, consume, report) {
  const pipe = join(workspace.directory, `${kind}.${format}`);
  execFileSync('mkfifo', [pipe]);
  const holder = openSync(pipe, 'r+'); // a reader sees no end of file while this is open
  const reader = openSync(pipe, 'r');
  const options = { ...dataset, ...chooseChunks(dataset, share), kind, format, file: pipe };
  const writerAbort = new AbortController(); // aborted if reading fails; otherwise the writer waits forever
  const script = join(import.meta.dirname, 'write-records-process.mjs');
  const writing = workspace
    .readOutput([process.execPath, script, JSON.stringify(options)], {
      signal: writerAbort.signal,
      onOutput: text => report(`loading ${kind} records, ${text.trim().split('\n').at(-1)}`),
    })
    .finally(() => closeSync(holder));
  const reading = consume(reader).catch(error => {
    writerAbort.abort();
    throw error;
  });
  try {
    await waitForAll([reading, writing]);
  } finally {
    closeSync(reader);
    rmSync(pipe, { force: true });
  }
}
