// dendro ingest: loads log files into the store of --data, or with --url into a running server.
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { type Invocation, nameOf, readRetentionDays, readStoreOptions } from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { UsageError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { BodyParserPool } from '../intake/body-parser-pool.ts';
import { type LogChunk, toChunks } from '../logs/log-chunks.ts';
import { type ParseResult, parseNdjsonLines } from '../logs/parse.ts';
import { parseQuarantined } from '../logs/quarantine-line.ts';
import { digestLogFile, type ReadProgress, readLogFile } from '../logs/read-file.ts';
import { quote, type Rejection } from '../logs/rejection.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import { openStore } from '../store/open-store.ts';
import type { EarlierLoad } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { describeEarlierLoad, IngestSummary } from './ingest-summary.ts';
import { type IngestTarget, type KindChunk, ServerTarget, StoreTarget } from './ingest-targets.ts';
import { createProgressBar } from './progress-bar.ts';
import { readRunningServer } from './running-server.ts';

export async function ingest(invocation: Invocation): Promise<void> {
  const files = invocation.positionals;
  if (files.length === 0) throw new UsageError('name at least one file to load, or - for standard input');
  const kind = readKind(invocation);
  const again = invocation.isOn('again');
  const target = await openTarget(invocation);
  try {
    for (const file of files) {
      const summary = new IngestSummary();
      const earlier =
        (again ? undefined : await findEarlierLoad(file, kind, target)) ??
        (await loadFile(file, { kind, again, target, summary }));
      const name = file === '-' ? 'standard input' : file;
      process.stdout.write(
        earlier === undefined ? summary.describe(name) : describeEarlierLoad(name, earlier),
      );
      if (earlier === undefined && summary.acceptedNone) process.exitCode = 1;
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
    throw new UsageError(
      `${nameOf(invocation, 'source')} ${source} is unknown; ${suggest(source, ACCEPTED_NAMES, 'allowed')}`,
    );
  return kind;
}

async function openTarget(invocation: Invocation): Promise<IngestTarget> {
  const server = readRunningServer(invocation);
  if (server !== undefined) return new ServerTarget(server);
  const options = readStoreOptions(invocation);
  const retentionDays = readRetentionDays(invocation);
  const cores = availableParallelism();
  const parser = new BodyParserPool(cores);
  // The parser threads keep the cores busy; with as many engine threads as cores, a load took a quarter longer.
  const store = await openStore({ ...options, threads: Math.ceil(cores / 2) });
  return new StoreTarget(store, parser, retentionDays, systemClock);
}

/** What the store saves as the source of a load. The records of a quarantine file can have several kinds. */
const sourceOf = (kind: LogKind | undefined) => kind ?? 'quarantine';

/**
 * Finds an earlier load of the same content from a file of the same size, to save the time of loading it again. If there is none,
 * the store still compares the digest with those of all earlier loads, after it has read everything.
 */
async function findEarlierLoad(
  file: string,
  kind: LogKind | undefined,
  target: IngestTarget,
): Promise<EarlierLoad | undefined> {
  const stats = file === '-' ? undefined : await stat(file).catch(() => undefined);
  if (stats?.isFile() !== true) return undefined; // loadFile reports a file that does not exist
  const loads = await target.findLoadsOfSize(sourceOf(kind), stats.size);
  if (loads.length === 0) return undefined;
  const digest = await digestLogFile(file).catch(() => '');
  return loads.find(load => load.digest === digest);
}

interface LoadOptions {
  readonly kind: LogKind | undefined;
  readonly again: boolean;
  readonly target: IngestTarget;
  readonly summary: IngestSummary;
}

/** If the target remembers an earlier load of the same content, loads nothing and returns that load. */
async function loadFile(
  file: string,
  { kind, again, target, summary }: LoadOptions,
): Promise<EarlierLoad | undefined> {
  const bar = createProgressBar(basename(file), process.stderr);
  const hash = createHash('sha256');
  let fileBytes = 0;
  const onProgress = ({ bytesRead, totalBytes }: ReadProgress) => {
    fileBytes = bytesRead;
    bar.update(totalBytes === undefined ? undefined : bytesRead / totalBytes, summary.describeProgress());
  };
  const identify = () => ({ source: sourceOf(kind), digest: hash.digest('hex'), fileBytes });
  try {
    const chunks = readLogFile(file, { onProgress, onContent: bytes => hash.update(bytes) });
    const kindChunks = kind === undefined ? readQuarantined(chunks) : withKind(chunks, kind);
    return await target.load(kindChunks, summary, { identify, again, nowMicros: systemClock() });
  } finally {
    bar.clear();
  }
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
    if ('rejection' in chunk) {
      yield chunk;
      continue;
    }
    const { groups, rejections } = groupByKind(chunk.lines);
    for (const rejection of rejections) yield { rejection };
    for (const [kind, records] of groups) yield* withKind(toChunks(records), kind);
  }
}

function groupByKind(lines: Uint8Array): {
  groups: Map<LogKind, ParseResult[]>;
  rejections: Rejection[];
} {
  const groups = new Map<LogKind, ParseResult[]>();
  const rejections: Rejection[] = [];
  for (const line of parseNdjsonLines(Buffer.from(lines).toString('utf8').split('\n'))) {
    const quarantined = 'value' in line ? parseQuarantined(line.value, line.index) : undefined;
    if (quarantined === undefined)
      throw new UsageError(
        '--source is required: only the records of a quarantine file contain their source',
      );
    const { kind, source, parsed } = quarantined;
    if (kind === undefined) {
      const message = `The source ${quote(source)} is unknown. Change "source" in the line to a log kind.`;
      rejections.push({ code: 'unknown_source', message });
      continue;
    }
    const group = groups.get(kind) ?? [];
    groups.set(kind, group);
    group.push(parsed);
  }
  return { groups, rejections };
}
