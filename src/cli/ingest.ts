// dendro ingest: loads log files into the store of a data directory, or into a running server.
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, resolve } from 'node:path';
import { type Invocation, nameOf, readAppConfig } from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { UsageError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { BodyParserPool } from '../intake/body-parser-pool.ts';
import { type ParseResult, parseNdjsonLines } from '../logs/parse.ts';
import { parseQuarantined } from '../logs/quarantine-line.ts';
import { digestLogFile, type LogChunk, type ReadProgress, readLogFile, toChunks } from '../logs/read-file.ts';
import { quote, type Rejection } from '../logs/rejection.ts';
import { ACCEPTED_NAMES, kindOf } from '../logs/source-name.ts';
import type { EarlierLoad } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { describeEarlierLoad, IngestSummary } from './ingest-summary.ts';
import { type KindChunk, type LoadFile, loadIntoServer, loadIntoStore } from './ingest-targets.ts';
import type { Io } from './io.ts';
import { findServer, openLocal } from './target.ts';
import { createProgressBar, escapeForTerminal } from './terminal.ts';

export async function ingest(invocation: Invocation, io: Io): Promise<number> {
  const files = invocation.positionals;
  if (files.length === 0) throw new UsageError('name at least one file to load, or - for standard input');
  const kind = readKind(invocation);
  const again = invocation.isOn('again');
  const allowsRejected = invocation.isOn('allow-rejected');
  const { load, findLoads, close } = await openTarget(invocation, io);
  let exitCode = 0;
  try {
    for (const file of files) {
      let summary = new IngestSummary();
      let earlierLoad =
        (again ? undefined : await findEarlierLoad(file, kind, findLoads)) ??
        (await loadFile(file, { kind, again, load, summary, io }));
      if (earlierLoad !== undefined && earlierLoad.erased.length > 0 && file !== '-') {
        summary = new IngestSummary();
        const restores = earlierLoad;
        earlierLoad = await loadFile(file, { kind, again, restores, load, summary, io });
      }
      const name = file === '-' ? 'standard input' : file;
      io.stdout.write(
        earlierLoad === undefined ? summary.describe(name) : describeEarlierLoad(name, earlierLoad),
      );
      if (earlierLoad === undefined && summary.hasRejected && !allowsRejected) exitCode = 1;
    }
  } finally {
    await close();
  }
  return exitCode;
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

/** Returns the earlier loads with this `LoadIdentity.source` and file size. */
type FindLoads = (source: string, fileBytes: number) => readonly EarlierLoad[];

interface IngestTarget {
  readonly load: LoadFile;
  readonly findLoads: FindLoads;
  close(): Promise<void>;
}

async function openTarget(invocation: Invocation, io: Io): Promise<IngestTarget> {
  const server = findServer(invocation);
  // A server remembers requests for 10 minutes, but no files.
  if (server !== undefined)
    return { load: loadIntoServer(server, io), findLoads: () => [], close: server.close };
  const config = readAppConfig(invocation);
  // Without --data, it depends on the working directory.
  if (invocation.origin('data') === undefined)
    io.stderr.write(`data directory: ${escapeForTerminal(resolve(config.store.dataDirectory))}\n`);
  const cores = availableParallelism();
  const bodyParser = new BodyParserPool(cores);
  // The parser threads keep the cores busy; with as many engine threads as cores, a load took a quarter longer.
  const store = { ...config.store, threads: Math.ceil(cores / 2) };
  const target = await openLocal({ ...config, store }, io, { bodyParser });
  return {
    load: loadIntoStore(target.store, bodyParser, config.retentionDays),
    findLoads: (source, bytes) => target.store.findLoadsOfSize(source, bytes),
    close: target.close,
  };
}

/** What the store saves as the source of a load: the log kind, or `quarantine` for a file whose records can have several. */
const sourceOf = (kind: LogKind | undefined) => kind ?? 'quarantine';

/**
 * Finds an earlier load of the same content from a file of the same size, before anything is parsed. If there is none, the
 * content may still have been loaded from a file of another size, such as a compressed one: the store compares the digest with
 * those of all earlier loads, after it has read everything.
 */
async function findEarlierLoad(
  file: string,
  kind: LogKind | undefined,
  findLoads: FindLoads,
): Promise<EarlierLoad | undefined> {
  const stats = file === '-' ? undefined : await stat(file).catch(() => undefined);
  if (stats?.isFile() !== true) return undefined; // loadFile reports a file that does not exist
  const loads = findLoads(sourceOf(kind), stats.size);
  if (loads.length === 0) return undefined;
  const digest = await digestLogFile(file).catch(() => '');
  return loads.find(load => load.digest === digest);
}

interface LoadOptions {
  readonly kind: LogKind | undefined;
  readonly again: boolean;
  readonly restores?: EarlierLoad;
  readonly load: LoadFile;
  readonly summary: IngestSummary;
  readonly io: Io;
}

/** If the target remembers an earlier load of the same content, loads nothing and returns that load. */
async function loadFile(
  file: string,
  { kind, again, restores, load, summary, io }: LoadOptions,
): Promise<EarlierLoad | undefined> {
  const bar = createProgressBar(basename(file), io.stderr);
  const hash = createHash('sha256');
  let fileBytes = 0;
  const onProgress = ({ bytesRead, totalBytes }: ReadProgress) => {
    fileBytes = bytesRead;
    bar.update(totalBytes === undefined ? undefined : bytesRead / totalBytes, summary.describeProgress());
  };
  const identify = () => ({ source: sourceOf(kind), digest: hash.digest('hex'), fileBytes });
  try {
    const chunks = readLogFile(file, {
      onProgress,
      onContent: bytes => hash.update(bytes),
      standardInput: io.stdin,
    });
    const kindChunks = kind === undefined ? readQuarantined(chunks) : withKind(chunks, kind);
    return await load(kindChunks, summary, { identify, again, restores, nowMicros: systemClock() });
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

/** Throws UsageError for a line that is no quarantined record. */
async function* readQuarantined(chunks: AsyncIterable<LogChunk>): AsyncGenerator<KindChunk> {
  for await (const chunk of chunks) {
    if ('rejection' in chunk) {
      yield chunk;
      continue;
    }
    const runs: { kind: LogKind | undefined; source: string; records: ParseResult[] }[] = [];
    for (const line of parseNdjsonLines(Buffer.from(chunk.lines).toString('utf8').split('\n'))) {
      const { kind, source, parsed } = readQuarantineLine(line);
      const last = runs.at(-1);
      if (last?.source === source) last.records.push(parsed);
      else runs.push({ kind, source, records: [parsed] });
    }
    for (const { kind, source, records } of runs)
      if (kind !== undefined) yield* withKind(toChunks(records), kind);
      else for (const _ of records) yield { rejection: unknownSource(source) };
  }
}

function readQuarantineLine(line: ParseResult): NonNullable<ReturnType<typeof parseQuarantined>> {
  const quarantined = 'value' in line ? parseQuarantined(line.value, line.index) : undefined;
  if (quarantined !== undefined) return quarantined;
  throw new UsageError('--source is required: only the records of a quarantine file contain their source');
}

function unknownSource(source: string): Rejection {
  const message = `The source ${quote(source)} is unknown. Change "source" in the line to a log kind.`;
  return { code: 'unknown_source', message };
}
