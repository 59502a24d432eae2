// Debian's PostgreSQL, a server of its own on the loopback interface, in the layout of Logflare. Asked over its own
// protocol, so it is spared the HTTP layer that stands before it there.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS, streamRecords } from '../records/platform.mjs';
import { findFreePorts } from '../tools/free-ports.mjs';
import { connectPostgres } from './postgres-client.mjs';
import { valuesOf } from './question.mjs';

const USER = 'postgres';
/** What a server with some memory to spare would have; the rest makes loading quicker and no answer slower. */
export const SETTINGS = {
  shared_buffers: '1GB',
  effective_cache_size: '8GB',
  work_mem: '64MB',
  maintenance_work_mem: '512MB',
  max_parallel_workers_per_gather: '2',
  max_parallel_maintenance_workers: '2',
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '8GB',
  autovacuum: 'off',
};

/** PostgreSQL refuses to run as root. */
const asUser =
  process.getuid?.() === 0 ? ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'] : [];

/** Where Debian keeps the programs of the newest version, or undefined. */
export function findPostgres() {
  const root = '/usr/lib/postgresql';
  try {
    const newest = readdirSync(root).sort((a, b) => Number(b) - Number(a))[0];
    return newest === undefined ? undefined : join(root, newest, 'bin');
  } catch {
    return undefined;
  }
}

export async function startPostgres(workplace) {
  const programs = findPostgres();
  const folder = join(workplace.folder, 'postgres');
  mkdirSync(folder);
  if (asUser.length > 0) {
    chmodSync(workplace.folder, 0o711);
    execFileSync('chown', [USER, folder]);
  }
  const data = join(folder, 'data');
  await workplace.read([
    ...asUser,
    join(programs, 'initdb'),
    '-D',
    data,
    '-U',
    USER,
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
  ]);
  const [port] = await findFreePorts(1);
  const settings = Object.entries({
    ...SETTINGS,
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
  });
  const command = [
    ...asUser,
    join(programs, 'postgres'),
    '-D',
    data,
    ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  let connection;
  const server = await workplace.startQuiet(
    command,
    async () => {
      connection = await connectPostgres(port, USER, USER);
    },
    'SIGINT',
  );
  return {
    name: 'postgres',
    command: workplace.show(command),
    async load(platform, share, report) {
      for (const kind of KINDS) {
        await connection.query(statementsOf('tables', kind));
        const psql = `psql -h 127.0.0.1 -p ${port} -U ${USER} -c`.split(' ');
        await streamRecords(
          workplace,
          platform,
          { kind, shape: 'postgres', share },
          stdin => workplace.read([...psql, `copy ${kind}_logs from stdin`], { stdin }),
          text => report(`PostgreSQL, ${text}`),
        );
        await connection.query(statementsOf('indexes', kind));
        await connection.query(`vacuum analyze ${kind}_logs`);
      }
    },
    async ask(call) {
      const sql = readSql(call.endpoint).replace(/\{(\w+)\}/g, (_, name) => toLiteral(valuesOf(call)[name]));
      const start = performance.now();
      const rows = await connection.query(sql);
      return { ms: performance.now() - start, rows };
    },
    async diskBytes() {
      const sizes = KINDS.map(kind => `pg_total_relation_size('${kind}_logs')`);
      return Number((await connection.query(`select ${sizes.join(' + ')}`))[0][0]);
    },
    async stop() {
      connection.end();
      await server.stop();
    },
  };
}

const readSql = name => readFileSync(join(import.meta.dirname, 'postgres', `${name}.sql`), 'utf8');
const statementsOf = (name, kind) => readSql(name).replaceAll('{kind}', kind);

function toLiteral({ type, value }) {
  if (type === 'timestamp')
    return value === null ? 'null::timestamp' : `(timestamp 'epoch' + ${value} * interval '1 microsecond')`;
  if (value === null) return 'null::text';
  return type === 'integer' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
}
