-- Sets the TTL of an existing table to the current retention, or removes it.
alter table {{database}}.{{storage_table}}{{on_cluster}} {{change_ttl}}
