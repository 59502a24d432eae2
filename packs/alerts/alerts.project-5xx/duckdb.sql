-- Projects of which a large share of the API requests fails.
select
  project,
  count(*) as requests,
  count(*) filter ({{category}} = '5xx') as errors,
  round(100.0 * errors / requests, 1) as error_percent
from {{logs}}
where timestamp > $now - to_seconds($window_seconds) and timestamp <= $now
group by project
having errors >= $min_errors and 100.0 * errors / requests >= $percent
order by errors desc, project
