-- Broken: pinned tokens may call it, but it does not apply the pin.
select id, timestamp from edge_logs
