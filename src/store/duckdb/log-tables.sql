-- What a record of each kind is made of in an embedded store's file. A kind has several tables of this form, which the view
-- of the name given here holds together (sealed-tables.ts). Columns that a saved query filters or counts are typed;
-- everything that was sent stands in metadata. DuckDB checks such JSON on its way in and keeps its text to the letter.
-- zstd needs the file's storage version to be 'latest' (open-database.ts sees to it); without, the file grows fivefold.

create table edge_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd,
  url varchar not null using compression zstd,
  path varchar not null
);

create table postgres_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table function_edge_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd,
  function_id varchar,
  execution_time_ms double,
  status_code integer
);

create table function_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table auth_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table realtime_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table storage_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table rest_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);

create table pooler_logs (
  id varchar not null,
  timestamp timestamp not null,
  project varchar not null,
  event_message varchar not null using compression zstd,
  metadata json not null using compression zstd
);
