-- Broken: reads a file.
select content as id, last_modified::timestamp as timestamp from read_text('/etc/hostname')
