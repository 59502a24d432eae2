-- A table of log records on one node. Timestamps are Unix microseconds, UTC: every version of ClickHouse counts and
-- compares whole numbers alike. Sorted by project and time, so that a project's question reads what is its own; a partition
-- a day, so that retention drops whole parts. The fsync settings make "inserted" mean "survives a power cut", since the
-- spool forgets a record once it is inserted. The window counts blocks in which a repeated one is known again.
create table if not exists {{database}}.{{table}}
(
  {{columns}}
)
engine = MergeTree
partition by toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))
order by (project, timestamp)
{{ttl}}
settings
  ttl_only_drop_parts = 1,
  non_replicated_deduplication_window = 10000,
  fsync_after_insert = 1,
  fsync_part_directory = 1
