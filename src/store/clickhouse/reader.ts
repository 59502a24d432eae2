// Asks questions: in turn, within the time limit, on whichever host answers. What is cancelled is cancelled in ClickHouse
// too: the connection is closed, and the server has been told to end a query whose connection is.
import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { storeClosed, timedOut, waitedTooLong } from '../query-errors.ts';
import type { QueryCall } from '../store.ts';
import { forCaller, isTimeout } from './errors.ts';
import type { Hosts } from './hosts.ts';
import { QueryQueue } from './query-queue.ts';
import { UnderWay } from './under-way.ts';

export interface ReaderLimits {
  readonly queryConcurrency: number;
  readonly queryQueueLength: number;
  /** Waiting and running together. */
  readonly queryTimeoutSeconds: number;
}

export interface Question {
  readonly sql: string;
  readonly parameters?: Readonly<Record<string, string | number | null>>;
  readonly settings?: ClickHouseSettings;
  /** Stands in ClickHouse's query log: what asked, never a value or a token. */
  readonly comment: string;
}

/** Rows as ClickHouse writes them in JSON, whole numbers of 64 bits and more as text. */
export interface Reply {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
  readonly waitedMs: number;
  readonly ranMs: number;
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

export class Reader {
  readonly #hosts: Hosts;
  readonly #limits: ReaderLimits;
  readonly #queue: QueryQueue;
  readonly #underWay = new UnderWay();

  constructor(hosts: Hosts, limits: ReaderLimits) {
    this.#hosts = hosts;
    this.#limits = limits;
    this.#queue = new QueryQueue(limits.queryConcurrency, limits.queryQueueLength);
  }

  /** Throws as Store.query says; errors about the question itself as ClickHouse gives them. */
  ask(question: Question, call: QueryCall = {}): Promise<Reply> {
    return this.#underWay.run(closed => this.#ask(question, call, closed));
  }

  close(): void {
    this.#underWay.end(storeClosed());
  }

  async #ask(question: Question, call: QueryCall, closed: AbortSignal): Promise<Reply> {
    call.signal?.throwIfAborted();
    const askedAt = performance.now();
    const limitMs = this.#limits.queryTimeoutSeconds * 1000;
    const deadline = AbortSignal.timeout(limitMs);
    const signals = [closed, deadline, ...(call.signal === undefined ? [] : [call.signal])];
    const cancel = AbortSignal.any(signals);
    let leave: (() => void) | undefined;
    try {
      cancel.throwIfAborted();
      leave = await this.#queue.enter(call, cancel);
      const startedAt = performance.now();
      const leftSeconds = Math.max(1, Math.ceil((limitMs - (startedAt - askedAt)) / 1000));
      const reply = await this.#hosts.run(async ({ client, signal }) => {
        const result = await client.query({
          query: question.sql,
          query_params: { ...question.parameters },
          format: 'JSONCompact',
          query_id: `dendro-${randomUUID()}`,
          clickhouse_settings: {
            ...SETTINGS,
            max_execution_time: leftSeconds,
            log_comment: question.comment,
            ...question.settings,
          },
          abort_signal: signal,
        });
        return result.json<Reply['rows'][number]>();
      }, cancel);
      const [waitedMs, ranMs] = [startedAt - askedAt, performance.now() - startedAt];
      return { columns: reply.meta ?? [], rows: reply.data, waitedMs, ranMs };
    } catch (error) {
      call.signal?.throwIfAborted();
      closed.throwIfAborted();
      if (deadline.aborted && leave === undefined) throw waitedTooLong();
      if (deadline.aborted || isTimeout(error)) throw timedOut(this.#limits.queryTimeoutSeconds);
      throw forCaller(error);
    } finally {
      leave?.();
    }
  }
}
