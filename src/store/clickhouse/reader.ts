// Runs queries on ClickHouse: through the query queue, within the time limit, on any host that responds. A cancelled
// query is also cancelled in ClickHouse, by closing its connection and by KILL QUERY.
import { randomUUID } from 'node:crypto';
import type { ClickHouseClient, ClickHouseSettings, ResultSet } from '@clickhouse/client';
import { timedOut } from '../../domain/errors.ts';
import { type QueryLimits, QueryQueue } from '../query-queue.ts';
import { countCharacters } from '../results.ts';
import type { QueryOptions } from '../store.ts';
import { isTimeout, toCallerError } from './errors.ts';
import type { Attempt, Hosts } from './hosts.ts';

/** Values of the parameters in the SQL, by name. */
export type ReaderParameters = Readonly<Record<string, string | number | null | readonly string[]>>;

export interface ReaderQuery {
  readonly sql: string;
  readonly parameters?: ReaderParameters;
  readonly settings?: ClickHouseSettings;
  /** As in QueryOptions. */
  readonly maxBytes?: number | undefined;
  /** Part of the comment by which an operator finds the query in ClickHouse's query log. */
  readonly purpose: 'query' | 'newest' | 'pattern' | 'check';
}

/** A row as in ClickHouse's JSON format: integers of 64 bits and more are strings. */
type ReaderRow = readonly (string | number | boolean | null)[];

interface ReaderRows {
  readonly rows: readonly ReaderRow[];
  /** Rows are missing, because they would have exceeded `maxBytes`. */
  readonly exceedsMaxBytes: boolean;
}

export interface ReaderResult extends ReaderRows {
  readonly queuedMs: number;
  readonly executedMs: number;
}

/** Set explicitly because the defaults differ between versions. */
const SETTINGS: ClickHouseSettings = {
  readonly: '2', // no writes; settings such as these can be changed
  // Later defaults do not apply: with one of 26.5, ORDER BY over many tables is not in order up to 26.5.2 (ClickHouse issue 106880).
  compatibility: '26.4',
  wait_end_of_query: 1, // an error in the middle of a query fails it instead of truncating its result
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_denormals: 0,
  cancel_http_readonly_queries_on_client_close: 1,
  // A limit of the server that is exceeded fails the query instead of truncating its result.
  timeout_overflow_mode: 'throw',
  read_overflow_mode: 'throw',
  result_overflow_mode: 'throw',
  group_by_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  distinct_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  set_overflow_mode: 'throw',
  transfer_overflow_mode: 'throw',
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

  get queue(): Pick<QueryQueue, 'waiting' | 'running'> {
    return this.#queue;
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
    return { ...result, queuedMs, executedMs };
  }

  /** Cancels every query. Resolves when the KILL QUERY statements have completed. */
  async close(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#kills);
  }

  async #send(
    { client, signal }: Attempt,
    { sql, parameters, maxBytes }: ReaderQuery,
    settings: ClickHouseSettings,
  ): Promise<ReaderRows> {
    const queryId = `dendro-${randomUUID()}`;
    try {
      const result = await client.query({
        query: sql,
        query_params: { ...parameters },
        format: 'JSONCompactEachRow',
        query_id: queryId,
        clickhouse_settings: { ...SETTINGS, ...settings },
        abort_signal: signal,
      });
      return await readRows(result, signal, maxBytes);
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
async function readRows(
  result: ResultSet<'JSONCompactEachRow'>,
  signal: AbortSignal,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<ReaderRows> {
  signal.throwIfAborted();
  const closeResult = () => result.close();
  signal.addEventListener('abort', closeResult);
  const rows: ReaderRow[] = [];
  let characters = 0;
  try {
    for await (const chunk of result.stream<ReaderRow>())
      for (const item of chunk) {
        const row = item.json();
        characters += countCharacters(row);
        if (characters > maxBytes) return { rows, exceedsMaxBytes: true }; // leaving the loop closes the result
        rows.push(row);
      }
    signal.throwIfAborted(); // a closed result can end without an error
    return { rows, exceedsMaxBytes: false };
  } finally {
    signal.removeEventListener('abort', closeResult);
  }
}
