// dendro ingest: loads log files into the store of --data, or with --url into a running server.
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { type Invocation, readRetentionDays, readStoreOptions } from '../config.ts';
import { UsageError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { BodyParserPool } from '../intake/body-parser-pool.ts';
import { type LogChunk, toChunks } from '../logs/log-chunks.ts';
import { type ParseResult, parseNdjsonLines } from '../logs/parse.ts';
import { parseQuarantined } from '../logs/quarantine-line.ts';
import { type ReadProgress, readLogFile } from '../logs/read-file.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import { openStore } from '../store/open-store.ts';
import { systemClock } from '../system/clock.ts';
import { IngestSummary } from './ingest-summary.ts';
import { type IngestTarget, type KindChunk, ServerTarget, StoreTarget } from './ingest-targets.ts';
import { createProgressBar } from './progress-bar.ts';
import { readRunningServer } from './running-server.ts';

export async function ingest(invocation: Invocation): Promise<void> {
  const files = invocation.positionals;
  if (files.length === 0) throw new UsageError('name at least one file to load, or - for standard input');
  const kind = readKind(invocation);
  const target = await openTarget(invocation);
  try {
    for (const file of files) {
      const summary = await loadFile(file, kind, target);
      process.stdout.write(summary.describe(file === '-' ? 'standard input' : file));
      if (summary.acceptedNone) process.exitCode = 1;
    }
  } finally {
    await target.close();
  }
}

/** Undefined without --source: then every line must be a quarantined record, which contains its source. */
function readKind(invocation: Invocation): LogKind | undefined {
  const source = invocation.text('source');
  if (source === undefined) return undefined;
  const kind = kindOf(source);
  if (kind === undefined)
    throw new UsageError(`--source ${source} is unknown; allowed: ${ACCEPTED_NAMES.join(', ')}`);
  return kind;
}

async function openTarget(invocation: Invocation): Promise<IngestTarget> {
  const server = readRunningServer(invocation);
  if (server !== undefined) return new ServerTarget(server);
  const cores = availableParallelism();
  const parser = new BodyParserPool(cores);
  // The parser threads keep the cores busy; with as many engine threads as cores, a load took a quarter longer.
  const store = await openStore({ ...readStoreOptions(invocation), threads: Math.ceil(cores / 2) });
  return new StoreTarget(store, parser, readRetentionDays(invocation), systemClock);
}

async function loadFile(
  file: string,
  kind: LogKind | undefined,
  target: IngestTarget,
): Promise<IngestSummary> {
  const summary = new IngestSummary();
  const bar = createProgressBar(basename(file), process.stderr);
  const onProgress = ({ bytesRead, totalBytes }: ReadProgress) =>
    bar.update(totalBytes === undefined ? undefined : bytesRead / totalBytes, summary.describeProgress());
  try {
    const chunks = readLogFile(file, { onProgress });
    await target.load(kind === undefined ? readQuarantined(chunks) : withKind(chunks, kind), summary);
  } finally {
    bar.clear();
  }
  return summary;
}

async function* withKind(
  chunks: AsyncIterable<LogChunk> | Iterable<LogChunk>,
  kind: LogKind,
): AsyncGenerator<KindChunk> {
  for await (const chunk of chunks) yield 'lines' in chunk ? { kind, lines: chunk.lines } : chunk;
}

/** Groups the records of a quarantine file by kind. Throws UsageError for a line that is not a quarantined record. */
async function* readQuarantined(chunks: AsyncIterable<LogChunk>): AsyncGenerator<KindChunk> {
  for await (const chunk of chunks) {
    if ('rejection' in chunk) yield chunk;
    else for (const [kind, records] of groupByKind(chunk.lines)) yield* withKind(toChunks(records), kind);
  }
}

function groupByKind(lines: Uint8Array): Map<LogKind, ParseResult[]> {
  const groups = new Map<LogKind, ParseResult[]>();
  for (const line of parseNdjsonLines(Buffer.from(lines).toString('utf8').split('\n'))) {
    const quarantined = 'value' in line ? parseQuarantined(line.value, line.index) : undefined;
    if (quarantined === undefined)
      throw new UsageError(
        '--source is required: only the records of a quarantine file contain their source',
      );
    const group = groups.get(quarantined.kind) ?? [];
    groups.set(quarantined.kind, group);
    group.push(quarantined.parsed);
  }
  return groups;
}
