// Runs queries on ClickHouse: through the query queue, within the time limit, on any host that responds. A cancelled
// query is also cancelled in ClickHouse, by closing its connection and by KILL QUERY.
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
  /** Part of the comment by which an operator finds the query in ClickHouse's query log. */
  readonly purpose: 'query' | 'newest' | 'pattern' | 'check';
}

/** Rows as in ClickHouse's JSON format: integers of 64 bits and more are strings. */
export interface ReaderResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
  readonly queuedMs: number;
  readonly executedMs: number;
}

/** Set explicitly because the defaults differ between versions. */
const SETTINGS: ClickHouseSettings = {
  readonly: '2', // no writes; settings such as these can be changed
  wait_end_of_query: 1, // an error in the middle of a query fails it instead of truncating its result
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_denormals: 0,
  cancel_http_readonly_queries_on_client_close: 1,
  skip_unavailable_shards: 0, // a shard that is down fails the query instead of leaving out its rows
  optimize_skip_unused_shards: 1,
  session_timezone: 'UTC',
};

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

  /** Cancels every query. Resolves when the KILL QUERY statements have completed. */
  async close(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#kills);
  }

  async #send({ client, signal }: Attempt, { sql, parameters }: ReaderQuery, settings: ClickHouseSettings) {
    const queryId = `dendro-${randomUUID()}`;
    try {
      const result = await client.query({
        query: sql,
        query_params: { ...parameters },
        format: 'JSONCompact',
        query_id: queryId,
        clickhouse_settings: { ...SETTINGS, ...settings },
        abort_signal: signal,
      });
      return await readToEnd(result, signal);
    } catch (error) {
      if (signal.aborted) this.#kill(client, queryId);
      throw error;
    }
  }

  /** Closing the connection is not enough for old servers, nor for any server behind a proxy that keeps it open. */
  #kill(client: ClickHouseClient, queryId: string): void {
    const query = `kill query where query_id = '${queryId}'`; // a user may kill its own queries without a privilege
    const kill = client
      .command({ query, abort_signal: AbortSignal.timeout(KILL_TIMEOUT_MS) })
      .catch(() => {}) // the server is down, or ends the query itself at max_execution_time
      .then(() => void this.#kills.delete(kill));
    this.#kills.add(kill);
  }
}

/** The client ignores its abort signal once a response has begun, so the result is closed here. */
async function readToEnd(result: ResultSet<'JSONCompact'>, signal: AbortSignal) {
  signal.throwIfAborted();
  const closeResult = () => result.close();
  signal.addEventListener('abort', closeResult);
  try {
    return await result.json<ReaderResult['rows'][number]>();
  } finally {
    signal.removeEventListener('abort', closeResult);
  }
}
