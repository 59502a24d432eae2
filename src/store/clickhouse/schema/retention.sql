-- Retention that was changed since the table was made.
alter table {{database}}.{{stored_table}}{{on_cluster}} {{change_ttl}}
