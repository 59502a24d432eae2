-- Broken: not a SELECT.
pragma table_info('edge_logs')
