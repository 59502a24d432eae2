-- Broken: writes.
create table copied as select id, timestamp from edge_logs
