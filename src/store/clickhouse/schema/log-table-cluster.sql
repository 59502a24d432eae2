-- The tables of one log kind on a cluster: the local table of each shard, and the Distributed table over all shards, which
-- queries and inserts use. log-table.sql explains the partitions, the order and the settings. The configuration of
-- each server must define the macros {shard} and {replica}.
create table if not exists {{database}}.{{table}}_local on cluster '{{cluster}}'
(
  {{columns}}
)
engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/{{keeper_path}}_local', '{replica}')
partition by toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))
order by (project, timestamp)
{{ttl}}
settings
  ttl_only_drop_parts = 1,
  replicated_deduplication_window = 10000,
  replicated_deduplication_window_seconds = 604800,
  fsync_after_insert = 1,
  fsync_part_directory = 1;

-- Sharded by project, so that a query about one project runs on one shard.
create table if not exists {{database}}.{{table}} on cluster '{{cluster}}'
as {{database}}.{{table}}_local
engine = Distributed('{{cluster}}', {{database}}, {{table}}_local, sipHash64(project))
