-- Functions of which a large share of the invocations fails.
select
  project,
  function_id,
  count(*) as invocations,
  count(*) filter (status_code >= 500) as errors,
  round(100.0 * errors / invocations, 1) as error_percent
from function_edge_logs
where timestamp > $now - to_seconds($window_seconds) and timestamp <= $now
group by project, function_id
having errors >= $min_errors and 100.0 * errors / invocations >= $percent
order by errors desc, project, function_id
