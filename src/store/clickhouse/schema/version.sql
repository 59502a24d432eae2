-- The schema migrations that were applied to this database.
create table if not exists {{database}}.dendro_schema{{on_cluster}}
(
  version UInt32,
  applied_at DateTime default now()
)
engine = {{version_engine}}
order by version
