// Writes the records of an old store to parts.
import { LOG_KINDS, type LogKind } from '../../../domain/log-columns.ts';
import type { Observe } from '../../../observe/event.ts';
import type { Clock } from '../../../system/clock.ts';
import { addContents, readContentBy, type TableContent } from '../checksum.ts';
import { emptyManifest, type Manifest, type PartEntry } from '../manifest.ts';
import { PartWriter } from '../part-writer.ts';
import { startSql, type TimeWindow } from '../time-windows.ts';
import { type OldStore, recordsOf, selectFrom } from './old-store.ts';
import { planParts, type Spans } from './plan-parts.ts';
import { type DamagedTable, type ReadTable, readTables } from './read-tables.ts';
import { findReplay } from './replay.ts';

const PROGRESS_MS = 5_000;
/** Each record is read, written and read back. */
const STEPS_PER_RECORD = 3;

export interface WritePartsOptions {
  /** The parts are written to this directory. */
  readonly partsDirectory: string;
  readonly maxPartBytes?: number | undefined;
  readonly acceptLoss?: boolean | undefined;
  readonly clock: Clock;
  readonly observe: Observe;
}

/** Returns the manifest that names the parts. Throws before it writes anything if a table cannot be read, unless the loss is accepted. */
export async function writeParts(store: OldStore, options: WritePartsOptions): Promise<Manifest> {
  const progress = new Progress(options.observe);
  const tables = await readTables(
    store,
    records => progress.start(records),
    async (_, records) => progress.add(records),
  );
  const storedUpTo = await store.readStoredUpTo();
  const replay = findReplay(tables, storedUpTo);
  reportLoss(replay.lost, options);
  const writer = new TableWriter(store, options, progress);
  try {
    const parts: PartEntry[] = [];
    for (const kind of LOG_KINDS)
      parts.push(
        ...(await writer.write(
          kind,
          replay.converted.filter(table => table.kind === kind),
        )),
      );
    return {
      ...emptyManifest(),
      generation: 1,
      nextPart: writer.nextPart,
      storedUpTo: replay.storedUpTo,
      parts,
      loads: await store.readLoads(),
    };
  } finally {
    await writer.close();
  }
}

/** Throws unless the loss is accepted. */
function reportLoss(lost: readonly DamagedTable[], { acceptLoss, observe }: WritePartsOptions): void {
  if (acceptLoss)
    for (const { name, records, problem } of lost)
      observe({ type: 'old_table_lost', table: name, records, problem });
  else if (lost.length > 0) {
    const list = lost.map(
      ({ name, records = 'an unknown number of', problem }) => `${name} (${records} records): ${problem}`,
    );
    throw new Error(
      `these tables cannot be read: ${list.join('; ')}. Restore a backup, or lose these records and convert the rest with --accept-loss`,
    );
  }
}

/** Reports how far the conversion is, every few seconds. */
class Progress {
  readonly #observe: Observe;
  #records = 0;
  #steps = 0;
  #reportedAt = 0;

  constructor(observe: Observe) {
    this.#observe = observe;
  }

  start(records: number): void {
    this.#records = records;
    this.#report();
  }

  add(records: number): void {
    this.#steps += records;
    if (performance.now() - this.#reportedAt >= PROGRESS_MS) this.#report();
  }

  #report(): void {
    this.#reportedAt = performance.now();
    const share = Math.min(1, this.#steps / Math.max(1, this.#records * STEPS_PER_RECORD));
    this.#observe({ type: 'conversion_progress', share, records: this.#records });
  }
}

class TableWriter {
  readonly #store: OldStore;
  readonly #options: WritePartsOptions;
  readonly #progress: Progress;
  readonly #partWriter: PartWriter;
  #nextPart = 1;

  constructor(store: OldStore, options: WritePartsOptions, progress: Progress) {
    this.#store = store;
    this.#options = options;
    this.#progress = progress;
    this.#partWriter = new PartWriter({ ...options, nextPartNumber: () => this.#nextPart++ });
  }

  get nextPart(): number {
    return this.#nextPart;
  }

  /** Writes the records of a kind. */
  async write(kind: LogKind, tables: readonly ReadTable[]): Promise<PartEntry[]> {
    const { clock, maxPartBytes = Number.POSITIVE_INFINITY } = this.#options;
    const planned = await planParts(mergeSpans(tables.map(({ spans }) => spans)), {
      nowMicros: clock(),
      maxPartBytes,
      readSpans: (width, range) => this.#readSpans(kind, tables, width, range),
    });
    const parts: PartEntry[] = [];
    for (const { content, ...range } of planned) {
      const from = `(${overlapping(tables, range)
        .map(table => selectFrom(table, inRange(range)))
        .join(' union all ')})`;
      const afterBatch = async (_: number, records: number) => this.#progress.add(records);
      parts.push(await this.#partWriter.write(this.#store.connection, kind, { from, content }, afterBatch));
    }
    const [expected, written] = [
      sumOf(tables.map(({ content }) => content.rows)),
      sumOf(parts.map(({ records }) => records)),
    ];
    if (written !== expected)
      throw new Error(`${written} of ${expected} records of kind ${kind} were converted`);
    return parts;
  }

  close(): Promise<void> {
    return this.#partWriter.close();
  }

  async #readSpans(
    kind: LogKind,
    tables: readonly ReadTable[],
    width: bigint,
    range: TimeWindow,
  ): Promise<Spans> {
    const except = { sql: `not (${inRange(range)})`, values: {} };
    const spans: Spans[] = [];
    for (const table of overlapping(tables, range))
      spans.push(
        await readContentBy(
          startSql(width),
          this.#store.connection,
          kind,
          recordsOf(table),
          undefined,
          except,
        ),
      );
    return mergeSpans(spans);
  }
}

function overlapping(tables: readonly ReadTable[], { start, end }: TimeWindow): readonly ReadTable[] {
  return tables.filter(({ content: { since = 0n, until = 0n } }) => since < end && until >= start);
}

function inRange({ start, end }: TimeWindow): string {
  return `timestamp >= make_timestamp(${start}::bigint) and timestamp < make_timestamp(${end}::bigint)`;
}

function mergeSpans(all: readonly Spans[]): Spans {
  const merged = new Map<bigint, TableContent>();
  for (const spans of all)
    for (const [start, content] of spans) {
      const known = merged.get(start);
      merged.set(start, known === undefined ? content : addContents(known, content));
    }
  return merged;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
