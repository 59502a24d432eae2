-- The tables of an embedded store's file, one for each kind of log. Columns that a saved query filters or counts are typed;
-- everything that was sent stands in metadata. DuckDB checks such JSON on its way in and keeps its text to the letter.
-- zstd needs the file's storage version to be 'latest' (open-database.ts sees to it); without, the file grows fivefold.

create table if not exists edge_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd,
  url varchar not null,
  path varchar not null
);

create table if not exists postgres_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table if not exists function_edge_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd,
  function_id varchar,
  execution_time_ms double,
  status_code integer
);

create table if not exists function_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table if not exists auth_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table if not exists realtime_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table if not exists storage_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table if not exists rest_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table if not exists pooler_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

-- How many of the records that came through the spool are in the tables above, for each kind. Written in the transaction
-- that brings them in, so that after a crash the spool knows where to go on.
create table if not exists sealed_records (
  kind varchar primary key,
  records bigint not null
);
