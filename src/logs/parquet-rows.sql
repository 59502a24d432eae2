-- What does each row of this Parquet file look like as JSON? An alias that no column is likely to bear: a column of the
-- same name would be taken for the row. Folders such as day=1/ on the file's way are no columns of it.
SELECT to_json("the whole row of the file")::VARCHAR AS row_json
FROM read_parquet($path, hive_partitioning = false) AS "the whole row of the file"
