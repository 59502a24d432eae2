-- The number of records of each log kind, and an MD5 of all their columns in the order of their ids.
select 'edge' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'), coalesce(url::varchar, 'null'), coalesce(path::varchar, 'null'))), '' order by id)) as digest
from edge_logs
union all
select 'postgres' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from postgres_logs
union all
select 'function_edge' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'), coalesce(function_id::varchar, 'null'), coalesce(execution_time_ms::varchar, 'null'), coalesce(status_code::varchar, 'null'))), '' order by id)) as digest
from function_edge_logs
union all
select 'function' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from function_logs
union all
select 'auth' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from auth_logs
union all
select 'realtime' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from realtime_logs
union all
select 'storage' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from storage_logs
union all
select 'rest' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from rest_logs
union all
select 'pooler' as kind, count(*) as count,
  md5(string_agg(md5(concat_ws(chr(31), coalesce(id::varchar, 'null'), coalesce(epoch_us(timestamp)::varchar, 'null'), coalesce(project::varchar, 'null'), coalesce(event_message::varchar, 'null'), coalesce(metadata::varchar, 'null'))), '' order by id)) as digest
from pooler_logs
