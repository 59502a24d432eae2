// Inserts blocks of rows into ClickHouse. Every block has an insert deduplication token, so a block whose response was
// lost, or that reached only some shards, can be sent again to any host. The caller decides when to send it again.
import { createHash } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { LogKind } from '../../domain/log-columns.ts';
import type { Credentials } from '../clickhouse-url.ts';
import { insertWithBisect } from '../insert-with-bisect.ts';
import type { StoreCallbacks } from '../store.ts';
import { isRowError, toCallerError, toOperatorError } from './errors.ts';
import type { Attempt, Hosts } from './hosts.ts';
import type { OutboxBlock } from './outbox.ts';
import { compress, decompress, toLine } from './rows.ts';

/** An insert that takes longer is aborted. */
const INSERT_TIMEOUT_MS = 60_000;

/** Set explicitly because the defaults differ between versions. */
const SETTINGS: ClickHouseSettings = {
  async_insert: 0, // a response means that the rows are stored
  wait_for_async_insert: 1,
  insert_deduplicate: 1,
  insert_distributed_sync: 1, // a Distributed table responds when the shards have stored the rows, not before
  input_format_skip_unknown_fields: 0,
  max_partitions_per_insert_block: '0', // no limit: a block may contain records of many days
  log_comment: 'dendro insert',
};

export class Writer {
  readonly #hosts: Hosts;
  readonly #credentials: Credentials;
  readonly #callbacks: StoreCallbacks;

  constructor(hosts: Hosts, credentials: Credentials, callbacks: StoreCallbacks) {
    this.#hosts = hosts;
    this.#credentials = credentials;
    this.#callbacks = callbacks;
  }

  /**
   * Resolves when the rows are stored and visible to queries. Rows that ClickHouse rejects because of their content are
   * reported as `recordRejected` and left out.
   */
  async insert({ kind, count, token, compressed }: Omit<OutboxBlock, 'first'>): Promise<void> {
    try {
      try {
        await this.#send(kind, compressed, token);
      } catch (error) {
        if (!isRowError(error)) throw error;
        await this.#insertWithBisect(kind, await decompress(compressed), count, token);
      }
    } catch (error) {
      throw toOperatorError('cannot insert records into ClickHouse', error);
    }
  }

  /**
   * Inserts no rows, to find out whether an insert into this table would succeed. Throws `unavailable` if ClickHouse is
   * unreachable or an operator must fix something, with ClickHouse's error as the cause.
   */
  async checkInsert(kind: LogKind): Promise<void> {
    try {
      await this.#send(kind, await compress(new Uint8Array()), '');
    } catch (error) {
      throw toCallerError(error);
    }
  }

  async #insertWithBisect(kind: LogKind, rows: Buffer, count: number, token: string): Promise<void> {
    await insertWithBisect(rows, count, {
      insert: async subset => {
        const subsetToken = createHash('sha256').update(token).update(subset).digest('hex');
        await this.#send(kind, await compress(subset), subsetToken);
      },
      isRowError,
      reject: (row, reason) => this.#callbacks.recordRejected?.({ kind, line: toLine(row), reason }),
    });
  }

  async #send(kind: LogKind, compressed: Uint8Array, token: string): Promise<void> {
    const signal = AbortSignal.timeout(INSERT_TIMEOUT_MS);
    await this.#hosts.run(attempt => this.#sendTo(attempt, kind, compressed, token), signal);
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
    // Reads the response to its end: if the connection breaks before the end, the insert may have failed.
    for await (const chunk of addAbortSignal(signal, stream))
      if (chunk.length > 0) throw new Error(`unexpected response to an insert: ${chunk}`);
  }
}
