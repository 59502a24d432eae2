-- Broken: writes.
insert into schema_version values (2)
