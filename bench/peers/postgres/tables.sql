-- As Logflare lays them for those who host it themselves: a table for each kind, all that was sent in one jsonb column, and
-- a BRIN index on the time. The primary key is added after loading, which leaves the same index, better packed.
create table {kind}_logs (
  id text,
  body jsonb,
  event_message text,
  timestamp timestamp
);
