// dendro ingest: loads log files into a store (--data, --store), or with --url into a running server.
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { type Invocation, nameOf, readRetentionDays, readStoreOptions } from '../config.ts';
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
import { type IngestTarget, type KindChunk, ServerTarget, StoreTarget } from './ingest-targets.ts';
import { openLoggedStore } from './open-logged-store.ts';
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
      const earlierLoad =
        (again ? undefined : await findEarlierLoad(file, kind, target)) ??
        (await loadFile(file, { kind, again, target, summary }));
      const name = file === '-' ? 'standard input' : file;
      process.stdout.write(
        earlierLoad === undefined ? summary.describe(name) : describeEarlierLoad(name, earlierLoad),
      );
      if (earlierLoad === undefined && summary.acceptedNone) process.exitCode = 1;
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
  const store = await openLoggedStore({ ...options, threads: Math.ceil(cores / 2) });
  return new StoreTarget(store, parser, retentionDays, systemClock);
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

async function* withKind(chunks: AsyncIterable<LogChunk>, kind: LogKind): AsyncGenerator<KindChunk> {
  for await (const chunk of chunks) yield 'lines' in chunk ? { kind, lines: chunk.lines } : chunk;
}

/** Groups the records of a quarantine file by kind, in each chunk. Throws UsageError for a line that is no quarantined record. */
async function* readQuarantined(chunks: AsyncIterable<LogChunk>): AsyncGenerator<KindChunk> {
  let recordsBefore = 0;
  for await (const chunk of chunks) {
    if ('rejection' in chunk) {
      yield { ...chunk, positions: [recordsBefore++] };
      continue;
    }
    const groups = new Map<LogKind, { lines: Uint8Array[]; positions: number[] }>();
    for (const line of parseNdjsonLines(Buffer.from(chunk.lines).toString('utf8').split('\n'))) {
      const position = recordsBefore++;
      const { kind, source, parsed } = readQuarantineLine(line);
      if (kind === undefined) {
        yield { rejection: unknownSource(source), positions: [position] };
        continue;
      }
      for (const content of toChunks([parsed])) {
        if ('rejection' in content) {
          yield { ...content, positions: [position] };
          continue;
        }
        const group = groups.get(kind) ?? { lines: [], positions: [] };
        groups.set(kind, group);
        group.lines.push(content.lines);
        group.positions.push(position);
      }
    }
    for (const [kind, { lines, positions }] of groups) yield { kind, lines: Buffer.concat(lines), positions };
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
