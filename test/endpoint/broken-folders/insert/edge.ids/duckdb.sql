-- Broken: writes.
insert into logs.schema_version values (2)
