-- Sets the TTL of an existing table to the current retention. Removes the TTL if the retention exceeds MAX_TTL_DAYS (schema.ts).
alter table {{database}}.{{storage_table}}{{on_cluster}} {{change_ttl}}
