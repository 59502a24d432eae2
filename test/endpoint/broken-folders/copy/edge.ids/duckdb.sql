-- Broken: writes a file.
copy (select id, timestamp from edge_logs) to 'out.csv'
