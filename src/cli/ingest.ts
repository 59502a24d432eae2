// dendro ingest: files into the store of --data. Each file is loaded as a whole or, if anything breaks, not at all.
import { basename } from 'node:path';
import { type Clock, systemClock } from '../clock.ts';
import { type Invocation, readRetentionDays, readStoreOptions, requireText } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type LogLines, toLogLines } from '../log-line.ts';
import type { LogKind, LogRecord } from '../log-record.ts';
import type { Parsed } from '../logs/parse.ts';
import { type ReadProgress, readLogFile } from '../logs/read-file.ts';
import { isRejection, toRecord } from '../logs/record.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { IngestTally } from './ingest-tally.ts';
import { makeProgressBar } from './progress-bar.ts';

interface Destination {
  readonly store: Store;
  readonly kind: LogKind;
  readonly retentionDays: number;
  readonly clock: Clock;
}

export async function ingest(invocation: Invocation): Promise<void> {
  const files = invocation.positionals;
  if (files.length === 0) throw new UsageError('name the files to load, or - for standard input');
  const kind = readKind(invocation);
  const retentionDays = readRetentionDays(invocation);
  const store = await openStore(readStoreOptions(invocation));
  try {
    for (const file of files) {
      const tally = await loadFile(file, { store, kind, retentionDays, clock: systemClock });
      process.stdout.write(tally.describe(file === '-' ? 'standard input' : file));
      if (tally.acceptedNone) process.exitCode = 1;
    }
  } finally {
    await store.close();
  }
}

function readKind(invocation: Invocation): LogKind {
  const source = requireText(invocation, 'source');
  const kind = kindOf(source);
  if (kind === undefined)
    throw new UsageError(`--source ${source} is not known; known are ${ACCEPTED_NAMES.join(', ')}`);
  return kind;
}

async function loadFile(file: string, destination: Destination): Promise<IngestTally> {
  const tally = new IngestTally();
  const bar = makeProgressBar(basename(file), process.stderr);
  const onProgress = ({ readBytes, totalBytes }: ReadProgress) =>
    bar.update(totalBytes === undefined ? undefined : readBytes / totalBytes, tally.progressNote());
  try {
    const batches = acceptedRecords(readLogFile(file, { onProgress }), destination, tally);
    await destination.store.append(batches);
  } finally {
    bar.clear();
  }
  return tally;
}

async function* acceptedRecords(
  batches: AsyncIterable<readonly Parsed[]>,
  { kind, retentionDays, clock }: Destination,
  tally: IngestTally,
): AsyncGenerator<LogLines> {
  for await (const batch of batches) {
    const door = { nowMicros: Number(clock()), retentionDays };
    const records: LogRecord[] = [];
    for (const parsed of batch) {
      const result = 'rejection' in parsed ? parsed.rejection : toRecord(parsed.value, kind, door);
      if (isRejection(result)) tally.reject(parsed.index, result);
      else records.push(result);
    }
    if (records.length > 0) yield toLogLines(kind, records);
    tally.accept(records.length);
  }
}
