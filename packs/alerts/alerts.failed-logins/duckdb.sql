-- Projects with a burst of failed logins.
select project, count(*) as failures
from {{logs}}
where timestamp > $now - to_seconds($window_seconds)
  and timestamp <= $now
  and {{category}} = '4xx'
  and ends_with({{path}}, '/token')
group by project
having failures >= $min_failures
order by failures desc, project
