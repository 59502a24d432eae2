-- Broken: changes a setting of the engine.
select id, timestamp from edge_logs, enable_logging(storage = 'file', storage_path = '/tmp')
