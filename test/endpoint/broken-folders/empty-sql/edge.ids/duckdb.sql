-- Broken: no statement.

