// What a data directory must contain: the batches and tokens that the workload sent, with what is known about each. The workload
// writes every change as a marker into the operation log, so the ledger of any crash point can be built.
import { createHash } from 'node:crypto';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';

/**
 * - sent: not acknowledged, so it is stored as a whole or not at all.
 * - stored: acknowledged, so it is stored once.
 * - removable: being erased or expired; stored as a whole or not at all.
 * - removed: erased or expired; not stored.
 */
export type BatchState = 'sent' | 'stored' | 'removable' | 'removed';

export interface BatchEntry {
  readonly number: number;
  readonly kind: LogKind;
  readonly project: string;
  readonly records: number;
  /** Length of each message in units of 32 characters. */
  readonly units: number;
  /** Unix microseconds. */
  readonly timestamp: number;
  /** Loaded as `dendro ingest` loads a file, instead of sent in a request. */
  readonly isFile?: boolean;
  readonly state: BatchState;
}

/** creating and revoking: the token may exist or not. */
export type TokenState = 'creating' | 'active' | 'revoking' | 'revoked';

export type Marker =
  | { readonly batch: BatchEntry }
  | { readonly token: string; readonly state: TokenState }
  /** The time of day, in Unix microseconds. */
  | { readonly clock: number };

/** What was found in a data directory. */
export interface StoredContent {
  readonly batches: readonly StoredBatch[];
  readonly tokens: readonly string[];
  /** What is wrong with the files after a clean stop (files.ts). */
  readonly fileProblems: readonly string[];
}

export interface StoredBatch {
  readonly number: number;
  readonly records: number;
  /** Different ids. */
  readonly distinct: number;
  /** Records with exactly the message that was sent. */
  readonly intact: number;
}

export interface LedgerContent {
  readonly clock: number;
  readonly batches: readonly BatchEntry[];
  readonly tokens: readonly (readonly [name: string, state: TokenState])[];
}

export interface Problems {
  readonly lost: string[];
  readonly duplicated: string[];
  /** Batches stored in part, changed or revived; tokens lost or revived; files that must not exist. */
  readonly other: string[];
}

export class Ledger {
  #clock: number;
  readonly #batches: Map<number, BatchEntry>;
  readonly #tokens: Map<string, TokenState>;

  constructor({ clock, batches, tokens }: LedgerContent) {
    this.#clock = clock;
    this.#batches = new Map(batches.map(batch => [batch.number, batch]));
    this.#tokens = new Map(tokens);
  }

  get content(): LedgerContent {
    return { clock: this.#clock, batches: [...this.#batches.values()], tokens: [...this.#tokens] };
  }

  apply(marker: Marker): void {
    if ('batch' in marker) this.#batches.set(marker.batch.number, marker.batch);
    else if ('token' in marker) this.#tokens.set(marker.token, marker.state);
    else this.#clock = marker.clock;
  }

  /** The project had records, and all of them are erased. */
  isErased(project: string): boolean {
    const batches = [...this.#batches.values()].filter(batch => batch.project === project);
    return batches.length > 0 && batches.every(({ state }) => state === 'removed');
  }

  /** After a start on a state in which nothing is pending, it is certain what is stored. */
  settle(stored: StoredContent): void {
    const numbers = new Set(stored.batches.map(({ number }) => number));
    for (const batch of this.#batches.values())
      if (batch.state === 'sent' && numbers.has(batch.number))
        this.apply({ batch: { ...batch, state: 'stored' } });
    for (const name of this.#tokens.keys())
      this.#tokens.set(name, stored.tokens.includes(name) ? 'active' : 'revoked');
  }

  compare(stored: StoredContent): Problems {
    const problems: Problems = { lost: [], duplicated: [], other: [...stored.fileProblems] };
    const found = new Map(stored.batches.map(batch => [batch.number, batch]));
    for (const batch of this.#batches.values()) compareBatch(batch, found.get(batch.number), problems);
    for (const { number } of stored.batches)
      if (!this.#batches.has(number)) problems.other.push(`batch ${number} was never sent`);
    for (const [name, state] of this.#tokens) {
      const exists = stored.tokens.includes(name);
      if (state === 'active' && !exists) problems.lost.push(`token ${name} is lost`);
      if (state === 'revoked' && exists) problems.other.push(`token ${name} was revoked and is back`);
    }
    return problems;
  }
}

function compareBatch(batch: BatchEntry, stored: StoredBatch | undefined, problems: Problems): void {
  const { number, kind, records, state } = batch;
  const { records: found, distinct, intact } = stored ?? { records: 0, distinct: 0, intact: 0 };
  const description = `batch ${number} (${kind}, ${state}): ${records} sent, ${found} stored, ${distinct} distinct, ${intact} intact`;
  if (found > distinct) problems.duplicated.push(description);
  else if (state === 'stored' && distinct < records) problems.lost.push(description);
  else if (state === 'removed' ? found > 0 : found > 0 && (found !== records || intact !== records))
    problems.other.push(description);
}

/** The body of a batch as NDJSON. The message of a record follows from its id, so that its content can be checked. */
export function bodyOf({ number, records, units, project, timestamp }: BatchEntry): string {
  return Array.from({ length: records }, (_, index) => {
    const id = `${number}-${index}-${units}`;
    const message = `${id}:${createHash('md5').update(id).digest('hex').repeat(units)}`;
    const at = new Date(timestamp / 1000).toISOString();
    return `${JSON.stringify({ id, project, timestamp: at, message })}\n`;
  }).join('');
}

const EACH_KIND = LOG_KINDS.map(kind => `select id, event_message from ${kind}_logs`).join(' union all ');

/** Selects the numbers of `StoredBatch` for every batch. */
export const STORED_BATCHES_SQL = `select cast(split_part(id, '-', 1) as integer) as number, count(*) as records,
  count(distinct id) as "distinct",
  count(*) filter (event_message = id || ':' || repeat(md5(id), cast(split_part(id, '-', 3) as integer))) as intact
  from (${EACH_KIND}) group by 1`;
