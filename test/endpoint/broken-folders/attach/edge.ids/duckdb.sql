-- Broken: opens another file.
attach 'other.duckdb' as other
