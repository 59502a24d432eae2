// Debian's PostgreSQL as a separate server on the loopback interface, in the table layout of Logflare. It is queried over
// its own protocol, without the HTTP layer of Logflare.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../records/dataset.mjs';
import { streamRecords } from '../records/stream-records.mjs';
import { findFreePorts } from '../tools/system.mjs';
import { joinWords, readValues } from './endpoint-sql.mjs';
import { connectPostgres } from './postgres-client.mjs';

/** @import { BenchRequest, Dataset, Report, Workspace } from '../types.ts' */

const USER = 'postgres';
/** The first six give the server more memory and two parallel workers. The others make loading faster and no query slower. */
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

/** The directory with the programs of the newest installed version, or undefined. */
export function findPostgres() {
  const root = '/usr/lib/postgresql';
  try {
    const newest = readdirSync(root).sort((a, b) => Number(b) - Number(a))[0];
    return newest === undefined ? undefined : join(root, newest, 'bin');
  } catch {
    return undefined;
  }
}

/** @param {Workspace} workspace */
export async function startPostgres(workspace) {
  const programDirectory = findPostgres();
  if (programDirectory === undefined) throw new Error('postgresql is not installed');
  const directory = join(workspace.directory, 'postgres');
  mkdirSync(directory);
  if (asUser.length > 0) {
    chmodSync(workspace.directory, 0o711);
    execFileSync('chown', [USER, directory]);
  }
  const data = join(directory, 'data');
  const initFlags = ['-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await workspace.readOutput([...asUser, join(programDirectory, 'initdb'), '-D', data, ...initFlags]);
  const [port] = await findFreePorts(1);
  const network = { listen_addresses: '127.0.0.1', port, unix_socket_directories: '' };
  const settings = Object.entries({ ...SETTINGS, ...network }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const command = [...asUser, join(programDirectory, 'postgres'), '-D', data, ...settings];
  const server = await workspace.startUntilPing(
    command,
    async () => (await connectPostgres(port, USER, USER)).end(),
    'SIGINT',
  );
  const connection = await connectPostgres(port, USER, USER);
  /** @param {BenchRequest} request @param {boolean} withTrigrams */
  const query = async (request, withTrigrams) => {
    const values = readValues(request);
    const sql = readSqlFile(request.endpoint)
      .replace('{words}', () => createWords(request, withTrigrams))
      .replace(/\{(\w+)\}/g, (_, name) => toLiteral(values[name]));
    const start = performance.now();
    const rows = await connection.query(sql);
    return { ms: performance.now() - start, rows };
  };
  return {
    name: 'postgres',
    command: workspace.describe(command),

    /** @param {Dataset} dataset @param {number} share @param {Report} report */
    async load(dataset, share, report) {
      for (const kind of KINDS) {
        await connection.query(readStatements('tables', kind));
        const psql = `psql -h 127.0.0.1 -p ${port} -U ${USER} -c`.split(' ');
        await streamRecords(
          workspace,
          dataset,
          { kind, format: 'postgres', share },
          stdin => workspace.readOutput([...psql, `copy ${kind}_logs from stdin`], { stdin }),
          text => report(`PostgreSQL, ${text}`),
        );
        await connection.query(readStatements('indexes', kind));
        await connection.query(`vacuum analyze ${kind}_logs`);
      }
    },

    /** @param {BenchRequest} request */
    query: request => query(request, false),

    /** For `withTrigrams`. */
    createTrigramIndexes: () => connection.query(readSqlFile('trigrams')),

    /** The same server, whose searches use the trigram indexes. */
    withTrigrams: () => ({
      name: 'postgres-trgm',
      command: workspace.describe(command),
      query: (/** @type {BenchRequest} */ request) => query(request, true),
      stop: async () => {}, // the system `postgres` stops the server
    }),

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

/**
 * The condition of a search. PostgreSQL uses an index only for exactly its expression, so appending an empty text avoids the
 * trigram indexes.
 * @param {BenchRequest} request @param {boolean} withTrigrams
 */
function createWords(request, withTrigrams) {
  const suffix = withTrigrams ? '' : " || ''";
  return joinWords(request, word =>
    ['event_message', "(body -> 'metadata')::text"]
      .map(text => `(${text}${suffix}) ilike '%${word}%'`)
      .join(' or '),
  );
}

/** @param {string} name */
const readSqlFile = name => readFileSync(join(import.meta.dirname, 'postgres', `${name}.sql`), 'utf8');
/** @param {string} name @param {string} kind */
const readStatements = (name, kind) => readSqlFile(name).replaceAll('{kind}', kind);

/** @param {{ type: string, value: unknown }} parameter */
function toLiteral({ type, value }) {
  if (type === 'timestamp')
    return value === null ? 'null::timestamp' : `(timestamp 'epoch' + ${value} * interval '1 microsecond')`;
  if (value === null) return 'null::text';
  return type === 'integer' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
}
