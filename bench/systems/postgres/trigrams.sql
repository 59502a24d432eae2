create extension pg_trgm;
create index on edge_logs using gin (event_message gin_trgm_ops);
create index on edge_logs using gin (((body -> 'metadata')::text) gin_trgm_ops);
