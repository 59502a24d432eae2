-- Projects with a burst of failed logins.
select project, count() as failures
from {{logs}}
where timestamp > {now:Int64} - {window_seconds:Int64} * 1000000
  and timestamp <= {now:Int64}
  and {{category}} = '4xx'
  and endsWith(ifNull({{path}}, ''), '/token')
group by project
having failures >= {min_failures:Int64}
order by failures desc, project
