// Debian's ClickHouse, a server of its own on the loopback interface. Tables and SQL are Dendro's own for ClickHouse, put
// into the dialect of 2018: values stand in the text, tables have neither codecs nor TTL. So that it compresses as our
// tables ask for, the whole server is told to use zstd.
import { createReadStream, mkdirSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { KINDS, streamRecords } from '../records/platform.mjs';
import { askServer } from '../tools/ask-server.mjs';
import { findFreePorts } from '../tools/free-ports.mjs';
import { residentPeakMb } from '../tools/process-figures.mjs';
import { sqlOf, valuesOf } from './question.mjs';

const program = join(import.meta.dirname, '..', '..', 'bin', 'dendro');

export async function startClickHouse(workplace) {
  const folder = join(workplace.folder, 'clickhouse');
  const [http, tcp, interserver] = await findFreePorts(3);
  mkdirSync(join(folder, 'data', 'tmp'), { recursive: true });
  writeFileSync(join(folder, 'users.xml'), USERS);
  writeFileSync(join(folder, 'config.xml'), configOf(folder, http, tcp, interserver));
  const url = `http://127.0.0.1:${http}`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const command = ['clickhouse-server', `--config-file=${join(folder, 'config.xml')}`];
  const server = await workplace.startQuiet(command, () => askServer(agent, `${url}/ping`));
  const run = sql => askServer(agent, url, undefined, sql);
  const read = async sql => JSON.parse((await run(`${sql} format JSONCompact`)).body).data;
  return {
    name: 'clickhouse',
    command: workplace.show(command),
    async load(platform, report) {
      const output = await workplace.read([process.execPath, program, 'schema', 'clickhouse']);
      for (const statement of output.split(';\n').filter(text => text.trim() !== ''))
        await run(toOldDdl(statement));
      for (const kind of KINDS) {
        const insert = encodeURIComponent(`insert into ${kind}_logs format TabSeparated`);
        await streamRecords(
          workplace,
          platform,
          { kind, shape: 'clickhouse' },
          descriptor => post(`${url}/?max_insert_block_size=1048576&query=${insert}`, descriptor),
          text => report(`ClickHouse, ${text}`),
        );
      }
      const torn = await read(
        `select table, partition from system.parts where active and database = 'default' group by table, partition having count() > 1`,
      );
      for (const [table, day] of torn) await run(`optimize table ${table} partition '${day}' final`);
    },
    async ask(call, wantsRows = false) {
      const { ms, body } = await run(toOldSql(sqlOf('clickhouse', call.endpoint), valuesOf(call)));
      return { ms, rows: wantsRows ? JSON.parse(body).data : undefined };
    },
    async diskBytes() {
      const [[bytes]] = await read(
        "select sum(bytes_on_disk) from system.parts where active and database = 'default'",
      );
      return Number(bytes);
    },
    residentPeakMb: () => residentPeakMb(server.pid),
    async stop() {
      agent.destroy();
      await server.stop();
    },
  };
}

function post(url, descriptor) {
  return new Promise((resolve, reject) => {
    const call = request(url, { method: 'POST' }, response => {
      let text = '';
      response.on('data', data => {
        text += data;
      });
      response.on('end', () =>
        response.statusCode === 200 ? resolve() : reject(new Error(text.slice(0, 500))),
      );
    });
    call.on('error', reject);
    createReadStream('', { fd: descriptor, autoClose: false, highWaterMark: 2 ** 20 })
      .on('error', reject)
      .pipe(call);
  });
}

function toOldDdl(statement) {
  return statement
    .replace(/ codec\((?:[^()]|\([^()]*\))*\)/g, '')
    .replace(/LowCardinality\((\w+)\)/g, '$1')
    .replace(/\nttl .*/g, '')
    .replace(/\nsettings[^;]*$/, '');
}

function toOldSql(sql, values) {
  const bound = sql.replace(/\{(\w+):([\w()]+)\}/g, (_, name, type) => toLiteral(type, values[name].value));
  return `${bound} format JSONCompact`;
}

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

const configOf = (folder, http, tcp, interserver) => `<yandex>
  <logger><level>warning</level><log>${folder}/log</log><errorlog>${folder}/errors</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${http}</http_port><tcp_port>${tcp}</tcp_port>
  <interserver_http_port>${interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
  <keep_alive_timeout>600</keep_alive_timeout>
  <path>${folder}/data/</path><tmp_path>${folder}/data/tmp/</tmp_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>5368709120</mark_cache_size>
  <compression><case>
    <min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio><method>zstd</method>
  </case></compression>
</yandex>`;
