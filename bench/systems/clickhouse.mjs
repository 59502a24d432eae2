// Debian's ClickHouse 18.16 as a separate server on the loopback interface. It runs Dendro's own ClickHouse tables and SQL,
// rewritten for that version: values are literals, tables have neither codecs nor a TTL nor columns of searchable fields. The
// server compresses everything with zstd, the codec of Dendro's tables.
import { createReadStream, mkdirSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { KINDS } from '../records/dataset.mjs';
import { streamRecords } from '../records/stream-records.mjs';
import { findFreePorts } from '../tools/system.mjs';
import { sendTimedRequest } from '../tools/timed-request.mjs';
import { joinWords, readSql, readValues } from './endpoint-sql.mjs';

/** @import { BenchRequest, Dataset, Report, Workspace } from '../types.ts' */

const dendro = join(import.meta.dirname, '..', '..', 'bin', 'dendro');

/** @param {Workspace} workspace */
export async function startClickHouse(workspace) {
  const directory = join(workspace.directory, 'clickhouse');
  const [http, tcp, interserver] = await findFreePorts(3);
  mkdirSync(join(directory, 'data', 'tmp'), { recursive: true });
  writeFileSync(join(directory, 'users.xml'), USERS);
  writeFileSync(join(directory, 'config.xml'), createConfig(directory, http, tcp, interserver));
  const url = `http://127.0.0.1:${http}`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const command = ['clickhouse-server', `--config-file=${join(directory, 'config.xml')}`];
  const server = await workspace.startUntilPing(command, () => sendTimedRequest(`${url}/ping`, { agent }));
  /** @param {string} sql */
  const run = sql => sendTimedRequest(url, { agent, sql });
  /** @param {string} sql */
  const readRows = async sql => JSON.parse((await run(`${sql} format JSONCompact`)).body).data;
  return {
    name: 'clickhouse',
    command: workspace.describe(command),

    /** @param {Dataset} dataset @param {Report} report */
    async load(dataset, report) {
      const schema = await workspace.readOutput([process.execPath, dendro, 'schema', 'clickhouse']);
      for (const statement of schema.split(';\n').filter(text => /^\s*(create|insert) /.test(text)))
        await run(toOldDdl(statement));
      for (const kind of KINDS) {
        const insert = encodeURIComponent(`insert into ${kind}_logs format TabSeparated`);
        await streamRecords(
          workspace,
          dataset,
          { kind, format: 'clickhouse' },
          descriptor => post(`${url}/?max_insert_block_size=1048576&query=${insert}`, descriptor),
          text => report(`ClickHouse, ${text}`),
        );
      }
      const unmerged = await readRows(
        `select table, partition from system.parts where active and database = 'default' and table like '%_logs' group by table, partition having count() > 1`,
      );
      for (const [table, day] of unmerged) await run(`optimize table ${table} partition '${day}' final`);
    },

    /** @param {BenchRequest} benchRequest */
    async query(benchRequest, withRows = false) {
      const sql =
        benchRequest.endpoint === 'logs.search'
          ? createSearchSql(benchRequest)
          : readSql('clickhouse', benchRequest.endpoint);
      const { ms, body } = await run(toOldSql(sql, readValues(benchRequest)));
      return { ms, rows: withRows ? JSON.parse(body).data : [] };
    },

    async diskBytes() {
      const [[bytes]] = await readRows(
        "select sum(bytes_on_disk) from system.parts where active and database = 'default'",
      );
      return Number(bytes);
    },

    async stop() {
      agent.destroy();
      await server.stop();
    },
  };
}

/** @param {string} url @param {number} descriptor */
function post(url, descriptor) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST' }, response => {
      let text = '';
      response.on('data', data => {
        text += data;
      });
      response.on('end', () =>
        response.statusCode === 200 ? resolve(undefined) : reject(new Error(text.slice(0, 500))),
      );
    });
    sent.on('error', reject);
    createReadStream('', { fd: descriptor, autoClose: false, highWaterMark: 2 ** 20 })
      .on('error', reject)
      .pipe(sent);
  });
}

/** @param {string} statement */
function toOldDdl(statement) {
  return statement
    .replace(/ codec\((?:[^()]|\([^()]*\))*\)/g, '')
    .replace(/,?\n {2}field_\w+ .*/g, '')
    .replace(/LowCardinality\((\w+)\)/g, '$1')
    .replace(/\nttl .*/g, '')
    .replace(/\nsettings[^;]*$/, '');
}

/**
 * Dendro's SQL reads columns whose DEFAULT expressions use functions that this version does not have. This is its fastest search for words.
 * @param {BenchRequest} benchRequest
 */
function createSearchSql(benchRequest) {
  const words = joinWords(benchRequest, word =>
    ['event_message', 'metadata']
      .map(column => `positionCaseInsensitive(${column}, '${word}') > 0`)
      .join(' or '),
  );
  return `select id, timestamp, event_message, metadata, 'edge' as kind
    from edge_logs
    where project = {project:String} and timestamp > {range_start:Int64} and ${words}
    order by timestamp desc, id
    limit 100`;
}

/** @param {string} sql @param {ReturnType<typeof readValues>} values */
function toOldSql(sql, values) {
  const bound = sql.replace(/\{(\w+):([\w()]+)\}/g, (_, name, type) => toLiteral(type, values[name].value));
  // The old version has no isValidUTF8. notEmpty has the same result here, because no URL of the records is longer than 8,192 bytes.
  return `${bound.replaceAll('isValidUTF8(', 'notEmpty(')} format JSONCompact`;
}

/** @param {string} type @param {unknown} value */
function toLiteral(type, value) {
  const inner = /^Nullable\((.*)\)$/.exec(type)?.[1] ?? type;
  if (value === null) return `CAST(NULL AS ${type})`;
  if (inner.startsWith('Int')) return `to${inner}(${value})`;
  return `'${String(value).replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

const USERS = `<yandex>
  <profiles><default>
    <output_format_json_quote_64bit_integers>0</output_format_json_quote_64bit_integers>
  </default></profiles>
  <quotas><default/></quotas>
  <users><default>
    <password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
  </default></users>
</yandex>`;

/** @param {string} directory @param {number} http @param {number} tcp @param {number} interserver */
const createConfig = (directory, http, tcp, interserver) => `<yandex>
  <logger><level>warning</level><log>${directory}/log</log><errorlog>${directory}/errors</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${http}</http_port><tcp_port>${tcp}</tcp_port>
  <interserver_http_port>${interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
  <keep_alive_timeout>600</keep_alive_timeout>
  <path>${directory}/data/</path><tmp_path>${directory}/data/tmp/</tmp_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>5368709120</mark_cache_size>
  <compression><case>
    <min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio><method>zstd</method>
  </case></compression>
</yandex>`;
