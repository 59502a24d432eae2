-- Broken: no SELECT.
pragma table_info('edge_logs')
