-- The table of one log kind on a single node. `timestamp` is Unix microseconds, UTC.
create table if not exists {{database}}.{{table}}
(
  {{columns}}
)
engine = MergeTree
-- One partition per day, so that the TTL drops whole parts.
partition by toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))
-- A query about one project reads only the granules of that project.
order by (project, timestamp)
{{ttl}}
settings
  ttl_only_drop_parts = 1,
  -- The number of recent blocks whose deduplication tokens the table remembers.
  non_replicated_deduplication_window = 10000,
  -- The spool deletes a record once it is inserted, so an inserted record must survive a power failure.
  fsync_after_insert = 1,
  fsync_part_directory = 1
