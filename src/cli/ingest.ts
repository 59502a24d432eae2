// dendro ingest: loads files of logs into the store of --data, or with --url into a running server.
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { type Invocation, readRetentionDays, readStoreOptions } from '../config.ts';
import { UsageError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { BodyParserPool } from '../intake/body-parser.ts';
import { type ReadProgress, readLogFile } from '../logs/read-file.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import { openStore } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { type IngestDestination, withKind } from './ingest-destination.ts';
import { ServerDestination } from './ingest-server.ts';
import { StoreDestination } from './ingest-store.ts';
import { IngestSummary } from './ingest-tally.ts';
import { makeProgressBar } from './progress-bar.ts';
import { readQuarantineFile } from './quarantine-file.ts';

export async function ingest(invocation: Invocation): Promise<void> {
  const files = invocation.positionals;
  if (files.length === 0) throw new UsageError('name the files to load, or - for standard input');
  const kind = readKind(invocation);
  const destination = await openDestination(invocation);
  try {
    for (const file of files) {
      const tally = await loadFile(file, kind, destination);
      process.stdout.write(tally.describe(file === '-' ? 'standard input' : file));
      if (tally.acceptedNone) process.exitCode = 1;
    }
  } finally {
    await destination.close();
  }
}

/** Undefined where each record tells its own, as in a quarantine file. */
function readKind(invocation: Invocation): LogKind | undefined {
  const source = invocation.text('source');
  if (source === undefined) return undefined;
  const kind = kindOf(source);
  if (kind === undefined)
    throw new UsageError(`--source ${source} is not known; known are ${ACCEPTED_NAMES.join(', ')}`);
  return kind;
}

async function openDestination(invocation: Invocation): Promise<IngestDestination> {
  const url = invocation.text('url');
  if (url !== undefined) return new ServerDestination(url, invocation.text('token') ?? invocation.apiKey);
  const cores = availableParallelism();
  const bodies = new BodyParserPool(cores);
  // The threads that read records keep the cores busy; an engine with as many of its own took a quarter more in all.
  const store = await openStore({ ...readStoreOptions(invocation), threads: Math.ceil(cores / 2) });
  return new StoreDestination(store, bodies, readRetentionDays(invocation), systemClock);
}

async function loadFile(
  file: string,
  kind: LogKind | undefined,
  destination: IngestDestination,
): Promise<IngestSummary> {
  const tally = new IngestSummary();
  const bar = makeProgressBar(basename(file), process.stderr);
  const onProgress = ({ readBytes, totalBytes }: ReadProgress) =>
    bar.update(totalBytes === undefined ? undefined : readBytes / totalBytes, tally.progressNote());
  try {
    const pieces = readLogFile(file, { onProgress });
    await destination.load(kind === undefined ? readQuarantineFile(pieces) : withKind(pieces, kind), tally);
  } finally {
    bar.clear();
  }
  return tally;
}
