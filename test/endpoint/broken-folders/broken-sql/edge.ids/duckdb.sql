-- Broken: no SQL.
selekt id, timestamp form edge_logs
