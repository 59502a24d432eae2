// Asks questions: in turn, within the time limit, on whichever host answers. What is cancelled is cancelled in ClickHouse
// too: its connection is closed, and the server is told to end it.
import { randomUUID } from 'node:crypto';
import type { ClickHouseClient, ClickHouseSettings, ResultSet } from '@clickhouse/client';
import { type QueryLimits, QueryQueue, timedOut } from '../query-queue.ts';
import type { QueryOptions } from '../store.ts';
import { isTimeout, toCallerError } from './errors.ts';
import type { Attempt, Hosts } from './hosts.ts';

export interface ReaderQuery {
  readonly sql: string;
  readonly parameters?: Readonly<Record<string, string | number | null>>;
  readonly settings?: ClickHouseSettings;
  /** Which of Dendro's questions it is, in ClickHouse's query log. */
  readonly purpose: 'query' | 'newest' | 'pattern' | 'check';
}

/** Rows as ClickHouse writes them in JSON, whole numbers of 64 bits and more as text. */
export interface ReaderResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
  readonly queuedMs: number;
  readonly executedMs: number;
}

/** Set explicitly, since defaults differ between versions. */
const SETTINGS: ClickHouseSettings = {
  readonly: '2', // reads alone; settings such as these may be given
  wait_end_of_query: 1, // an error in the middle is an error, never half an answer
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_denormals: 0,
  cancel_http_readonly_queries_on_client_close: 1,
  skip_unavailable_shards: 0, // a shard that is gone is an error, never a silently smaller answer
  optimize_skip_unused_shards: 1,
  session_timezone: 'UTC',
};

/** For a server to be told that nobody waits for a query any more. */
const KILL_TIMEOUT_MS = 2_000;

export class Reader {
  readonly #hosts: Hosts;
  readonly #limits: QueryLimits;
  readonly #queue: QueryQueue;
  readonly #kills = new Set<Promise<void>>();

  constructor(hosts: Hosts, limits: QueryLimits) {
    this.#hosts = hosts;
    this.#limits = limits;
    this.#queue = new QueryQueue(limits);
  }

  /** Throws as Store.query does; errors about the SQL itself are thrown as ClickHouse reports them. */
  async query(query: ReaderQuery, options: QueryOptions = {}): Promise<ReaderResult> {
    const comment = `dendro ${query.purpose}${options.label === undefined ? '' : ` ${options.label}`}`;
    const { result, queuedMs, executedMs } = await this.#queue.run(async ({ signal, secondsLeft }) => {
      const settings = { max_execution_time: secondsLeft, log_comment: comment, ...query.settings };
      try {
        return await this.#hosts.run(attempt => this.#send(attempt, query, settings), signal);
      } catch (error) {
        throw isTimeout(error) ? timedOut(this.#limits.queryTimeoutSeconds) : toCallerError(error);
      }
    }, options);
    return { columns: result.meta ?? [], rows: result.data, queuedMs, executedMs };
  }

  /** Resolves when every running query was cancelled. */
  async close(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#kills);
  }

  async #send({ client, signal }: Attempt, { sql, parameters }: ReaderQuery, settings: ClickHouseSettings) {
    const id = `dendro-${randomUUID()}`;
    try {
      const result = await client.query({
        query: sql,
        query_params: { ...parameters },
        format: 'JSONCompact',
        query_id: id,
        clickhouse_settings: { ...SETTINGS, ...settings },
        abort_signal: signal,
      });
      return await readWhole(result, signal);
    } catch (error) {
      if (signal.aborted) this.#kill(client, id);
      throw error;
    }
  }

  /** Old servers do not look whether a connection is closed, and no server does behind a proxy that keeps it open. */
  #kill(client: ClickHouseClient, id: string): void {
    const query = `kill query where query_id = '${id}'`; // one's own, which needs no right
    const kill = client
      .command({ query, abort_signal: AbortSignal.timeout(KILL_TIMEOUT_MS) })
      .catch(() => {}) // the server is gone, or ends it at its time limit
      .then(() => void this.#kills.delete(kill));
    this.#kills.add(kill);
  }
}

/** The client minds a signal until an answer begins; how long the rest of it takes is up to the server. */
async function readWhole(result: ResultSet<'JSONCompact'>, signal: AbortSignal) {
  signal.throwIfAborted();
  const breakOff = () => result.close();
  signal.addEventListener('abort', breakOff);
  try {
    return await result.json<ReaderResult['rows'][number]>();
  } finally {
    signal.removeEventListener('abort', breakOff);
  }
}
