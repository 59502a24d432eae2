// Reads the metrics that are not counted from events (gauges, and some counters) from the components of a running server.
import { statfs } from 'node:fs/promises';
import type { AppConfig } from './config.ts';
import { LOG_KINDS, type LogKind } from './domain/log-columns.ts';
import type { ServingDependencies } from './http/serving.ts';
import type { SampledValues } from './observe/metrics.ts';
import type { Store } from './store/store.ts';
import { type Clock, MICROS_PER_SECOND } from './system/clock.ts';

/** The minimum time between two queries to ClickHouse for the newest records, however often metrics are read. */
const NEWEST_RECORDS_INTERVAL_MS = 60_000;
/** A store that responds more slowly must not delay the metrics. */
const NEWEST_RECORDS_TIMEOUT_MS = 1_000;

interface Sources {
  readonly config: AppConfig;
  readonly version: string;
  /** `lastServing` stays defined while the server stops. */
  readonly state: { readonly status: string; readonly lastServing: ServingDependencies | undefined };
  readonly clock: Clock;
}

export class MetricSampler {
  readonly #sources: Sources;
  /** The timestamps of the newest records as last read, in Unix microseconds. */
  readonly #newestRecords = new Map<LogKind, bigint>();
  #newestReadAt = Number.NEGATIVE_INFINITY;

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  async sample(): Promise<SampledValues> {
    const { config, version, state } = this.#sources;
    const serving = state.lastServing;
    return [
      ['dendro_build_info', 1, { version, store: config.storeName }],
      ['dendro_ready', state.status === 'ok' ? 1 : 0],
      ...(await sampleDisk(config.store.dataDirectory)),
      ...(serving === undefined ? [] : sampleServing(serving)),
      ...(serving === undefined ? [] : await this.#sampleNewestRecords(serving.store)),
    ];
  }

  async #sampleNewestRecords(store: Store): Promise<SampledValues> {
    const now = performance.now();
    const isCheap = store.name === 'duckdb'; // the embedded store has these timestamps in memory
    const isDue = isCheap || now - this.#newestReadAt >= NEWEST_RECORDS_INTERVAL_MS;
    if (isDue && store.readStatistics().isReachable) {
      this.#newestReadAt = now;
      await this.#readNewestRecords(store);
    }
    return [...this.#newestRecords].map(([kind, micros]) => [
      'dendro_newest_record_timestamp_seconds',
      Number(micros) / Number(MICROS_PER_SECOND),
      { kind },
    ]);
  }

  async #readNewestRecords(store: Store): Promise<void> {
    const now = this.#sources.clock();
    const options = {
      signal: AbortSignal.timeout(NEWEST_RECORDS_TIMEOUT_MS),
      callers: { ids: new Set<string>() },
      label: 'metrics',
    };
    const read = async (kind: LogKind) => {
      const micros = await store.newestTimestamp(kind, now, undefined, options);
      if (micros === undefined) this.#newestRecords.delete(kind);
      else this.#newestRecords.set(kind, micros);
    };
    await Promise.allSettled(LOG_KINDS.map(read)); // a kind that fails keeps its last known value
  }
}

async function sampleDisk(dataDirectory: string): Promise<SampledValues> {
  const { bavail, bsize } = await statfs(dataDirectory);
  return [['dendro_disk_free_bytes', bavail * bsize]];
}

function sampleServing({
  store,
  cache,
  intake,
  unsentResponses,
  alerts,
}: ServingDependencies): SampledValues {
  const { waitingQueries, runningQueries, ...statistics } = store.readStatistics();
  return [
    ['dendro_queries_waiting', waitingQueries],
    ['dendro_queries_running', runningQueries],
    ['dendro_unsent_bytes', unsentResponses.bytes],
    ['dendro_cache_entries', cache?.size ?? 0],
    ['dendro_cache_bytes', cache?.bytes ?? 0],
    ['dendro_cache_refreshes_total', cache?.refreshes ?? 0],
    ['dendro_cache_refresh_failures_total', cache?.refreshFailures ?? 0],
    ['dendro_intake_queue_bytes', intake.queuedBytes],
    ['dendro_spool_bytes', intake.spoolBytes],
    ['dendro_spool_oldest_record_age_seconds', intake.oldestUnappliedAgeMs / 1000],
    ...sampleStore(statistics),
    ...(alerts === undefined ? [] : sampleAlerts(alerts)),
  ];
}

function sampleAlerts(alerts: NonNullable<ServingDependencies['alerts']>): SampledValues {
  const { countByState, undelivered, overdueMs } = alerts.statistics();
  return [
    ...[...countByState].map(([state, count]) => ['dendro_alerts', count, { state }] as const),
    ['dendro_alert_evaluation_age_seconds', overdueMs / 1000],
    ['dendro_notifications_waiting', undelivered],
  ];
}

function sampleStore({
  embedded,
  clickhouse,
}: Pick<ReturnType<Store['readStatistics']>, 'embedded' | 'clickhouse'>): SampledValues {
  const values: [...SampledValues] = [];
  if (embedded !== undefined) {
    values.push(
      ['dendro_store_bytes', embedded.fileBytes],
      ['dendro_parts_set_aside', embedded.setAsideParts],
      ['dendro_memtables', embedded.activeMemtables, { state: 'active' }],
      ['dendro_memtables', embedded.immutableMemtables, { state: 'immutable' }],
    );
    for (const [kind, count] of embedded.partCountByKind) values.push(['dendro_parts', count, { kind }]);
  }
  if (clickhouse !== undefined) {
    values.push(['dendro_outbox_records', clickhouse.outboxRecords]);
    for (const [host, isUp] of clickhouse.isUpByHost)
      values.push(['dendro_clickhouse_host_up', isUp ? 1 : 0, { host }]);
  }
  return values;
}
