-- Returns each row of the Parquet file as JSON. If a column had the name of the table alias, to_json would get only that column.
-- So the alias is a name that no column is likely to have. Directories such as day=1/ in the path do not become columns.
SELECT to_json("the whole row of the file")::VARCHAR AS row_json
FROM read_parquet($path, hive_partitioning = false) AS "the whole row of the file"
