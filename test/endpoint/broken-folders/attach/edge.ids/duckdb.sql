-- Broken: attaches another database file.
attach 'other.duckdb' as other
