-- The tables of a self-hosted Logflare: one for each log kind, the whole record in one jsonb column, and a BRIN index on the
-- timestamp. The primary key is added after loading, which leaves the same index, but better packed.
create table {kind}_logs (
  id text,
  body jsonb,
  event_message text,
  timestamp timestamp
);
