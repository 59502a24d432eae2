-- Broken: changes a setting.
set memory_limit = '100GB'
