-- Projects of which a large share of the API requests fails.
select project, requests, errors, round(100 * errors / requests, 1) as error_percent
from (
  select project, count() as requests, countIf({{category}} = '5xx') as errors
  from {{logs}}
  where timestamp > {now:Int64} - {window_seconds:Int64} * 1000000 and timestamp <= {now:Int64}
  group by project
)
where errors >= {min_errors:Int64} and 100 * errors / requests >= {percent:Int64}
order by errors desc, project
