// All metrics of Dendro. The metrics of the process (process_*, nodejs_*) are those of prom-client.

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** The metric exists only with this store. */
  readonly store?: string;
}

const define =
  (type: MetricDefinition['type']) =>
  (help: string, labels: readonly string[] = []): MetricDefinition => ({ type, help, labels });
const counter = define('counter');
const gauge = define('gauge');
const histogram = define('histogram');
const only = (store: 'duckdb' | 'clickhouse', definition: MetricDefinition) => ({ ...definition, store });

export const METRICS = {
  dendro_build_info: gauge('Always 1. The labels have the version and the store.', ['version', 'store']),
  dendro_ready: gauge('1 if queries are served, as in /health/ready; otherwise 0.'),

  // HTTP
  dendro_requests_total: counter(
    'HTTP responses by route and status, except those to CORS preflights and to requests that the HTTP parser rejects. Not counted if the client disconnects before its response.',
    ['route', 'status'],
  ),
  dendro_endpoint_requests_total: counter(
    'Queries and explanations by endpoint, status class and cache outcome. An explanation has the outcome `bypass`, and a failed request the outcome `none`. Not counted if the client disconnects before its response.',
    ['endpoint', 'status_class', 'cache'],
  ),
  dendro_http_request_duration_seconds: histogram(
    'Time until the response was ready to be sent, by endpoint (or route, if there is none) and status class.',
    ['endpoint', 'status_class'],
  ),
  dendro_auth_failures_total: counter('Requests refused because of their token, by reason.', ['reason']),
  dendro_unsent_bytes: gauge(
    'Size of the responses that clients have not read yet, and of large results that are being encoded, in bytes.',
  ),

  // Queries
  dendro_query_queue_seconds: histogram('Time that successful queries waited in the queue, by endpoint.', [
    'endpoint',
  ]),
  dendro_query_store_seconds: histogram('Time that successful queries ran in the store, by endpoint.', [
    'endpoint',
  ]),
  dendro_queries_waiting: gauge('Queries in the queue.'),
  dendro_queries_running: gauge('Queries that the store is running.'),

  // Cache
  dendro_cache_entries: gauge('Cached results.'),
  dendro_cache_bytes: gauge('Size of the cached results in bytes.'),
  dendro_cache_refreshes_total: counter('Background refreshes of cached results, including failed ones.'),
  dendro_cache_refresh_failures_total: counter(
    'Background refreshes that failed. The cached result stays until it expires.',
  ),

  // Intake
  dendro_intake_requests_total: counter(
    'Log requests that were processed, including repeats, by kind. A request with several kinds counts once for each.',
    ['kind'],
  ),
  dendro_intake_bytes_total: counter(
    'Size of the bodies of processed log requests as received, before decompression, by kind. A body with several kinds counts for one of them.',
    ['kind'],
  ),
  dendro_records_accepted_total: counter('Log records accepted and acknowledged.', ['kind']),
  dendro_project_requests_total: counter(
    'With --project-metrics: accepted records of requests to the API (kind edge) and to functions (kind function_edge), by project.',
    ['kind', 'project'],
  ),
  dendro_project_errors_total: counter(
    'With --project-metrics: those of dendro_project_requests_total with a status of 500 or higher.',
    ['kind', 'project'],
  ),
  dendro_records_rejected_total: counter('Log records rejected by intake, by error code.', ['kind', 'code']),
  dendro_records_quarantined_total: counter('Rejected records written to the quarantine file.'),
  dendro_batches_deduplicated_total: counter('Batches that were sent again and not stored twice.', ['kind']),
  dendro_intake_queue_bytes: gauge('Bytes received by intake and not yet visible to queries.'),
  dendro_spool_bytes: gauge('Size of the spool on disk in bytes.'),
  dendro_spool_oldest_record_age_seconds: gauge(
    'Age of the oldest spooled record that queries do not see yet; 0 if there is none.',
  ),

  // Store
  dendro_records_applied_total: counter(
    'Records that the store has processed: they are visible to queries, or it rejected them.',
    ['kind'],
  ),
  dendro_records_rejected_by_store_total: counter(
    'Records that the store rejected, kept in the quarantine file.',
    ['kind'],
  ),
  dendro_records_expired_total: counter('Records removed because they exceeded the retention period.'),
  dendro_records_evicted_total: counter('Records removed because of --max-disk, the oldest first.'),
  dendro_newest_record_timestamp_seconds: gauge(
    'Timestamp of the newest stored record that is not later than now, in Unix seconds, by kind.',
    ['kind'],
  ),
  dendro_failures_total: counter(
    'Failed background operations, by operation: spool_read, store_read, spool_write, spool_cleanup, apply, flush, verification, quarantine, retention, eviction, erase, compaction, part_deletion, alert_state. apply, flush and verification have the log kind, too.',
    ['operation', 'kind'],
  ),
  dendro_disk_free_bytes: gauge('Free space of the file system of the data directory, in bytes.'),
  dendro_store_bytes: only('duckdb', gauge('Size of all parts in bytes.')),
  dendro_memtables: only(
    'duckdb',
    gauge('Active memtables with records, and immutable memtables that wait for their flush, by state.', [
      'state',
    ]),
  ),
  dendro_parts: only('duckdb', gauge('Parts (files with log records), by kind.', ['kind'])),
  dendro_parts_set_aside: only(
    'duckdb',
    gauge('Parts that are damaged or missing. Queries lack their records.'),
  ),
  dendro_flush_duration_seconds: only(
    'duckdb',
    histogram('Duration of successful flushes, by kind.', ['kind']),
  ),
  dendro_compactions_total: only('duckdb', counter('Compactions: the store merged parts.')),
  dendro_compaction_duration_seconds: only('duckdb', histogram('Duration of successful compactions.')),
  dendro_clickhouse_host_up: only(
    'clickhouse',
    gauge('1 if the ClickHouse host responded when it was last tried; otherwise 0.', ['host']),
  ),
  dendro_outbox_records: only(
    'clickhouse',
    gauge('Records in the outbox, which ClickHouse has not acknowledged yet.'),
  ),

  // Alerts on logs; only with --alerts
  dendro_alerts: gauge('Alerts by state: ok, pending, firing, error.', ['state']),
  dendro_alert_evaluations_total: counter(
    'Evaluations of alerts by outcome: ok, failed, or missed because earlier ones took too long.',
    ['outcome'],
  ),
  dendro_alert_evaluation_age_seconds: gauge(
    'How much the last evaluation of an alert is older than its interval, for the alert that is most overdue; 0 if none is.',
  ),
  dendro_notifications_total: counter(
    'Notifications by receiver and outcome: sent, failed (an attempt; it is retried), dropped.',
    ['receiver', 'outcome'],
  ),
  dendro_notifications_waiting: gauge('Notifications that are not delivered yet.'),
} satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;
