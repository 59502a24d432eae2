// All metrics of Dendro: type, help text and labels. The metrics of the process (process_*, nodejs_*) are those of prom-client.

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** The metric exists only with this store. */
  readonly store?: 'duckdb' | 'clickhouse';
}

export const METRICS = {
  dendro_build_info: {
    type: 'gauge',
    help: 'Always 1. The labels have the version and the store.',
    labels: ['version', 'store'],
  },
  dendro_ready: {
    type: 'gauge',
    help: '1 if queries are served, as in /health/ready; otherwise 0.',
    labels: [],
  },

  // HTTP
  dendro_requests_total: {
    type: 'counter',
    help: 'HTTP responses by route and status, except those to CORS preflights and to requests that the HTTP parser rejects. Not counted if the client disconnects before its response.',
    labels: ['route', 'status'],
  },
  dendro_endpoint_requests_total: {
    type: 'counter',
    help: 'Queries and explanations by endpoint, status class and cache outcome. An explanation has the outcome `bypass`, and a failed request the outcome `none`. Not counted if the client disconnects before its response.',
    labels: ['endpoint', 'status_class', 'cache'],
  },
  dendro_http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time until the response was ready to be sent, by endpoint (or route, if there is none) and status class.',
    labels: ['endpoint', 'status_class'],
  },
  dendro_auth_failures_total: {
    type: 'counter',
    help: 'Requests refused because of their token, by reason.',
    labels: ['reason'],
  },
  dendro_unsent_bytes: {
    type: 'gauge',
    help: 'Size of the responses that clients have not read yet, and of large results that are being encoded, in bytes.',
    labels: [],
  },

  // Queries
  dendro_query_queue_seconds: {
    type: 'histogram',
    help: 'Time that successful queries waited in the queue, by endpoint.',
    labels: ['endpoint'],
  },
  dendro_query_store_seconds: {
    type: 'histogram',
    help: 'Time that successful queries ran in the store, by endpoint.',
    labels: ['endpoint'],
  },
  dendro_queries_waiting: { type: 'gauge', help: 'Queries in the queue.', labels: [] },
  dendro_queries_running: { type: 'gauge', help: 'Queries that the store is running.', labels: [] },

  // Cache
  dendro_cache_entries: { type: 'gauge', help: 'Cached results.', labels: [] },
  dendro_cache_bytes: { type: 'gauge', help: 'Size of the cached results in bytes.', labels: [] },
  dendro_cache_refreshes_total: {
    type: 'counter',
    help: 'Background refreshes of cached results, including failed ones.',
    labels: [],
  },
  dendro_cache_refresh_failures_total: {
    type: 'counter',
    help: 'Background refreshes that failed. The cached result stays until it expires.',
    labels: [],
  },

  // Intake
  dendro_intake_requests_total: {
    type: 'counter',
    help: 'Log requests that were processed, including repeats, by kind. A request with several kinds counts once for each.',
    labels: ['kind'],
  },
  dendro_intake_bytes_total: {
    type: 'counter',
    help: 'Size of the bodies of processed log requests as received, before decompression, by kind. A body with several kinds counts for one of them.',
    labels: ['kind'],
  },
  dendro_records_accepted_total: {
    type: 'counter',
    help: 'Log records accepted and acknowledged.',
    labels: ['kind'],
  },
  dendro_records_rejected_total: {
    type: 'counter',
    help: 'Log records rejected by intake, by error code.',
    labels: ['kind', 'code'],
  },
  dendro_records_quarantined_total: {
    type: 'counter',
    help: 'Rejected records written to the quarantine file.',
    labels: [],
  },
  dendro_batches_deduplicated_total: {
    type: 'counter',
    help: 'Batches that were sent again and not stored twice.',
    labels: ['kind'],
  },
  dendro_intake_queue_bytes: {
    type: 'gauge',
    help: 'Bytes received by intake and not yet visible to queries.',
    labels: [],
  },
  dendro_spool_bytes: { type: 'gauge', help: 'Size of the spool on disk in bytes.', labels: [] },
  dendro_spool_oldest_record_age_seconds: {
    type: 'gauge',
    help: 'Age of the oldest spooled record that queries do not see yet; 0 if there is none.',
    labels: [],
  },

  // Store
  dendro_records_applied_total: {
    type: 'counter',
    help: 'Records that the store has processed: they are visible to queries, or it rejected them.',
    labels: ['kind'],
  },
  dendro_records_rejected_by_store_total: {
    type: 'counter',
    help: 'Records that the store rejected, kept in the quarantine file.',
    labels: ['kind'],
  },
  dendro_records_expired_total: {
    type: 'counter',
    help: 'Records removed because they exceeded the retention period.',
    labels: [],
  },
  dendro_records_evicted_total: {
    type: 'counter',
    help: 'Records removed because of --max-disk, the oldest first.',
    labels: [],
  },
  dendro_newest_record_timestamp_seconds: {
    type: 'gauge',
    help: 'Timestamp of the newest stored record that is not later than now, in Unix seconds, by kind.',
    labels: ['kind'],
  },
  dendro_failures_total: {
    type: 'counter',
    help: 'Failed background operations, by operation: spool_read, store_read, spool_write, spool_cleanup, apply, flush, verification, quarantine, retention, eviction, erase, compaction. apply, flush and verification have the log kind, too.',
    labels: ['operation', 'kind'],
  },
  dendro_disk_free_bytes: {
    type: 'gauge',
    help: 'Free space of the file system of the data directory, in bytes.',
    labels: [],
  },
  dendro_store_bytes: {
    type: 'gauge',
    help: 'Size of all parts in bytes.',
    labels: [],
    store: 'duckdb',
  },
  dendro_memtables: {
    type: 'gauge',
    help: 'Active memtables with records, and immutable memtables that wait for their flush, by state.',
    labels: ['state'],
    store: 'duckdb',
  },
  dendro_parts: {
    type: 'gauge',
    help: 'Parts (files with log records), by kind.',
    labels: ['kind'],
    store: 'duckdb',
  },
  dendro_parts_set_aside: {
    type: 'gauge',
    help: 'Parts that are damaged or missing. Queries lack their records.',
    labels: [],
    store: 'duckdb',
  },
  dendro_flush_duration_seconds: {
    type: 'histogram',
    help: 'Duration of successful flushes, by kind.',
    labels: ['kind'],
    store: 'duckdb',
  },
  dendro_compactions_total: {
    type: 'counter',
    help: 'Compactions: the store merged parts.',
    labels: [],
    store: 'duckdb',
  },
  dendro_compaction_duration_seconds: {
    type: 'histogram',
    help: 'Duration of successful compactions.',
    labels: [],
    store: 'duckdb',
  },
  dendro_clickhouse_host_up: {
    type: 'gauge',
    help: '1 if the ClickHouse host responded when it was last tried; otherwise 0.',
    labels: ['host'],
    store: 'clickhouse',
  },
  dendro_outbox_records: {
    type: 'gauge',
    help: 'Records in the outbox, which ClickHouse has not acknowledged yet.',
    labels: [],
    store: 'clickhouse',
  },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;
