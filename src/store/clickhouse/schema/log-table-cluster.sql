-- The same table on a cluster: what a shard holds, and under the name that queries use, all shards together. Sharded by
-- project, so that a project's question goes to one shard. {shard} and {replica} are macros of each server's configuration.
create table if not exists {{database}}.{{table}}_local on cluster '{{cluster}}'
(
  {{columns}}
)
engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/{{path}}_local', '{replica}')
partition by toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))
order by (project, timestamp)
{{ttl}}
settings
  ttl_only_drop_parts = 1,
  replicated_deduplication_window = 10000,
  replicated_deduplication_window_seconds = 604800,
  fsync_after_insert = 1,
  fsync_part_directory = 1;

create table if not exists {{database}}.{{table}} on cluster '{{cluster}}'
as {{database}}.{{table}}_local
engine = Distributed('{{cluster}}', {{database}}, {{table}}_local, sipHash64(project))
