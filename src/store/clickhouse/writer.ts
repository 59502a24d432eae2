// Brings rows into ClickHouse. Every block carries a token by which ClickHouse knows it again, so that one whose answer was
// lost, or that reached one shard and not another, is simply sent again, to whichever host answers.
import { createHash } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { LogKind } from '../../domain/log-columns.ts';
import type { Credentials } from '../clickhouse-url.ts';
import { insertWithBisect } from '../insert-with-bisect.ts';
import type { StoreEvents } from '../store.ts';
import { isRowError, toOperatorError } from './errors.ts';
import type { Attempt, Hosts } from './hosts.ts';
import { InFlight } from './in-flight.ts';
import { compress, type OutboxBlock } from './outbox.ts';
import { toLine } from './rows.ts';

/** A block that takes longer is given up and sent again. */
const INSERT_TIMEOUT_MS = 60_000;

/** Set explicitly, since defaults differ between versions. */
const SETTINGS: ClickHouseSettings = {
  async_insert: 0, // an answer means that the rows are stored
  wait_for_async_insert: 1,
  insert_deduplicate: 1,
  insert_distributed_sync: 1, // on a cluster: when the shards have them, rather than when they are on their way
  input_format_skip_unknown_fields: 0,
  max_partitions_per_insert_block: '0', // records of many days in one block are fine
  log_comment: 'dendro insert',
};

export class Writer {
  readonly #hosts: Hosts;
  readonly #credentials: Credentials;
  readonly #events: StoreEvents;
  readonly #inFlight = new InFlight();

  constructor(hosts: Hosts, credentials: Credentials, watch: StoreEvents) {
    this.#hosts = hosts;
    this.#credentials = credentials;
    this.#events = watch;
  }

  /** Resolves when all rows can be seen but those that ClickHouse refuses for what they hold, which are told of. */
  async insert(block: OutboxBlock): Promise<void> {
    const { kind, count, token, compressed } = block;
    try {
      try {
        await this.#send(kind, compressed, token);
      } catch (error) {
        if (!isRowError(error)) throw error;
        await this.#insertWithBisect(kind, await promisify(gunzip)(compressed), count, token);
      }
    } catch (error) {
      throw toOperatorError('records could not be inserted', error);
    }
  }

  async close(): Promise<void> {
    await this.#inFlight.close(new Error('the store is closed'));
  }

  /** Nothing is inserted: whether it would be. */
  async checkInsert(kind: LogKind): Promise<void> {
    await this.#send(kind, await compress(new Uint8Array()), '');
  }

  async #insertWithBisect(kind: LogKind, rows: Buffer, count: number, token: string): Promise<void> {
    await insertWithBisect(rows, count, {
      insert: async part => {
        const own = createHash('sha256').update(token).update(part).digest('hex');
        await this.#send(kind, await compress(part), own);
      },
      isDataError: isRowError,
      reject: (row, reason) => this.#events.recordRejected?.({ kind, line: toLine(row), reason }),
    });
  }

  async #send(kind: LogKind, compressed: Uint8Array, token: string): Promise<void> {
    await this.#inFlight.run(closed => {
      const cancel = AbortSignal.any([closed, AbortSignal.timeout(INSERT_TIMEOUT_MS)]);
      return this.#hosts.run(attempt => this.#sendTo(attempt, kind, compressed, token), cancel);
    });
  }

  async #sendTo(
    { client, signal }: Attempt,
    kind: LogKind,
    compressed: Uint8Array,
    token: string,
  ): Promise<void> {
    const { stream } = await client.exec({
      query: `insert into ${kind}_logs format JSONEachRow`,
      values: Readable.from([compressed], { objectMode: false }),
      http_headers: { 'Content-Encoding': 'gzip' },
      auth: { username: this.#credentials.user, password: this.#credentials.password },
      clickhouse_settings: { ...SETTINGS, insert_deduplication_token: token },
      abort_signal: signal,
    });
    // The answer has to end, in time and well: one that breaks off may stand for an insert that did, too.
    for await (const part of addAbortSignal(signal, stream))
      if (part.length > 0) throw new Error(`an answer to an insert: ${part}`);
  }
}
