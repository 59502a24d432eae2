alter table {kind}_logs add primary key (id);
create index on {kind}_logs using brin (timestamp);
