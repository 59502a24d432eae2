-- Generates the records of a data set from their numbers. They are the same on every machine, except for the time at which
-- they end. Every value is a hash of the record's number, so any slice of the records can be generated alone.
-- For speed, values that vary little come from 4,096 prepared shapes, and values that vary much are written into them. The
-- shapes are lists in variables: joining tables of them would not keep the order of time and would not be faster. concat()
-- copies each text once; a chain of || copies it once for each operator.
-- generate-records.mjs sets the variables `projects` (names in alphabetical order; the index of a project is its position in
-- that list), `by_size` (project indexes, the largest project first), `fixed_projects` (project index and number of records),
-- `start_micros` and `span_micros`.

-- A pseudo-random integer from 0 to `below` - 1. The text `purpose` makes the values of one record differ from each other.
create macro chance(number, purpose, below) as (hash(number, purpose) % below)::int;
create macro choose(number, purpose, choices) as choices[1 + chance(number, purpose, len(choices))];

create table shapes as
select shape,
  choose(shape, 'method', ['GET', 'GET', 'GET', 'POST', 'PATCH']) as method,
  choose(shape, 'status', [200, 200, 200, 200, 201, 204, 304, 401, 404, 500]) as status,
  '203.0.113.' || chance(shape, 'ip', 256) as ip,
  choose(shape, 'path', ['/rest/v1/orders', '/rest/v1/profiles', '/rest/v1/rpc/search', '/auth/v1/token', '/auth/v1/user',
    '/storage/v1/object/public/avatars', '/realtime/v1/websocket', '/functions/v1/hello']) as path,
  choose(shape, 'function', ['send-mail', 'resize-image', 'hello', 'checkout', 'sync-orders']) as function_id,
  choose(shape, 'agent', [
    'Mozilla/5.0 (X11; Linux x86_64) Firefox/141.0', 'Mozilla/5.0 (Macintosh) Version/18.5 Safari/605.1.15',
    'Mozilla/5.0 (Windows NT 10.0) Chrome/139.0.0.0', 'node', 'okhttp/4.12.0', 'Dart/3.8 (dart:io)']) as agent,
  -- country, city, number of the network, airport code of the data center
  choose(shape, 'country', [['DE', 'Berlin', '3320', 'TXL'], ['FR', 'Paris', '3215', 'CDG'], ['BR', 'Recife', '28573', 'REC'],
    ['JP', 'Osaka', '4713', 'KIX'], ['IN', 'Pune', '24560', 'BOM'], ['US', 'Ashburn', '14618', 'IAD']]) as country,
  '"headers":{"user_agent":"' || agent || '","x_forwarded_for":"' || ip || '","x_client_info":"platform-js/2.'
    || chance(shape, 'client', 40) || '.0","accept":"*/*","content_length":"' || chance(shape, 'length', 4000)
    || '","cf_ray":"' as headers
from range(4096) as shapes(shape);

-- The values of an expression for all shapes, as a list.
create macro listed(expression) as (select list(expression order by shape) from shapes);
set variable paths = listed(path);
set variable statuses = listed(status);
set variable functions = listed(function_id);
set variable edge_messages = listed(method || ' | ' || status || ' | ' || ip || ' | ' || agent || ' | ');
set variable edge_heads = listed('{"request":{"method":"' || method || '","path":"' || path
  || '",' || headers);
set variable edge_middles = listed('"},"cf":{"country":"' || country[1] || '","city":"' || country[2] || '","asn":' || country[3]
  || ',"colo":"' || country[4] || '"},"host":"');
set variable edge_tails = listed('"},"response":{"status_code":' || status || ',"origin_time":' || chance(shape, 'origin', 300)
  || ',"headers":{"content_type":"application/json","x_request_id":"');
set variable function_edge_heads = listed('{"function_id":"' || function_id || '","request":{"method":"POST","pathname":"/functions/v1/'
  || function_id || '",' || headers);
set variable function_edge_tails = listed('"},"response":{"status_code":' || status
  || ',"headers":{"content_type":"application/json","x_request_id":"');

-- The value that the shape of a record has in such a list.
create macro shape_of(key, variable) as getvariable(variable)[1 + (key % 4096)::bigint];
create macro hex(key, purpose) as lower(to_hex(hash(key, purpose)));

-- Timestamp of record `n` of `count`: evenly spaced with a small pseudo-random offset.
create macro micros_of(n, count, salt) as
  (getvariable('start_micros') + (n + (hash(n, salt) % 1000) / 1000.0) / count * getvariable('span_micros'))::bigint;

-- One of `chunks` time slices of a kind's records: timestamp, project index, and a key from which all other values derive.
-- `total` includes the records of the fixed projects. The share of the n-th of the other projects is roughly proportional
-- to 1/n (Zipf).
create macro keys_of_chunk(kind, total, chunk, chunks) as table
  with others as (select total - list_sum([s.records for s in getvariable('fixed_projects')])::bigint as count),
  ordinary as (
    select hash(n, kind) as key, micros_of(n, count, kind) as micros,
      getvariable('by_size')[floor(pow(1 + len(getvariable('by_size')), (hash(n, kind, 'project') % 1000000000) / 1e9))::bigint] as project_index
    from others, range((count * chunk // chunks)::bigint, (count * (chunk + 1) // chunks)::bigint) as numbers(n)
  ),
  fixed as (
    select hash(n, kind, s.project_index) as key, micros_of(n, s.records, kind || s.project_index::varchar) as micros, s.project_index as project_index
    from (select unnest(getvariable('fixed_projects')) as s),
      range((s.records * chunk // chunks)::bigint, (s.records * (chunk + 1) // chunks)::bigint) as numbers(n)
  )
  from ordinary union all from fixed;

-- The selected chunk. The views below generate its records in the same order.
create table record_keys (key ubigint, micros bigint, project_index smallint);

create view edge_records as
select hex(key, 'id') || hex(key, 'id2') as id, micros, project,
  shape_of(key, 'edge_messages') || url as event_message,
  concat(shape_of(key, 'edge_heads'), hex(key, 'ray'), shape_of(key, 'edge_middles'), host, '","url":"', url,
    shape_of(key, 'edge_tails'), hex(key, 'r1'), hex(key, 'r2'), '"}}}') as metadata,
  url, path
from (
  select key, micros, getvariable('projects')[project_index] as project, concat(project, '.platform.example') as host,
    shape_of(key, 'paths') as path, concat('https://', host, path, '?id=eq.', (hash(key, 'target') % 1000000)::varchar) as url
  from record_keys
);

create view function_edge_records as
select hex(key, 'id') || hex(key, 'id2') as id, micros, project,
  concat('POST | ', status_code::varchar, ' | https://', host, '/functions/v1/', function_id) as event_message,
  concat(shape_of(key, 'function_edge_heads'), hex(key, 'ray'), '"},"host":"', host, '","url":"https://', host,
    '/functions/v1/', function_id, shape_of(key, 'function_edge_tails'), hex(key, 'r1'), hex(key, 'r2'),
    '"}},"project_ref":"', project, '","deployment_id":"', project, '_', function_id, '","execution_id":"',
    hex(key, 'e1'), hex(key, 'e2'), '","execution_time_ms":', execution_time_ms::varchar, '}') as metadata,
  function_id, execution_time_ms, status_code
from (
  select key, micros, getvariable('projects')[project_index] as project, concat(project, '.platform.example') as host,
    shape_of(key, 'functions') as function_id,
    shape_of(key, 'statuses') as status_code,
    -- most about 30 ms, a few up to 2 s
    round(20 / (1 - (hash(key, 'duration') % 1000000) / 1e6 * 0.99))::int as execution_time_ms
  from record_keys
);
