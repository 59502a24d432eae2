// A ClickHouse cluster on loopback ports: two shards of two replicas each, and ZooKeeper, from Debian's packages. Each is
// a process that tests can kill and start again.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const CLUSTER = 'logs';
export const ZOOKEEPER_JAR = '/usr/share/java/zookeeper.jar';
/** The shard and replica of each server. */
const LAYOUT = [
  [1, 'a'],
  [1, 'b'],
  [2, 'a'],
  [2, 'b'],
] as const;
const START_TIMEOUT_MS = 30_000;

interface Node {
  readonly shard: number;
  readonly replica: string;
  readonly directory: string;
  readonly http: number;
  readonly tcp: number;
  readonly interserver: number;
  process: ChildProcess | undefined;
}

export class Cluster {
  readonly #directory = mkdtempSync(join(tmpdir(), 'dendro-cluster-'));
  readonly #nodes: Node[] = [];
  #keeperPort = 0;
  #keeper: ChildProcess | undefined;

  static async start(): Promise<Cluster> {
    const cluster = new Cluster();
    try {
      await cluster.#prepare();
      cluster.#startKeeper();
      await waitUntilListening(cluster.#keeperPort);
      await Promise.all(cluster.#nodes.map((_, index) => cluster.start(index)));
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** The HTTP ports: 0 and 1 are the replicas of the first shard, 2 and 3 of the second. */
  get ports(): number[] {
    return this.#nodes.map(({ http }) => http);
  }

  async start(index: number): Promise<void> {
    const node = this.#nodeAt(index);
    if (node.process !== undefined) return;
    const child = spawn('clickhouse-server', [`--config-file=${join(node.directory, 'config.xml')}`], {
      cwd: node.directory,
      stdio: 'ignore',
    });
    node.process = child;
    // 18.16 sometimes crashes under load, so it is restarted, as a service manager would.
    child.once('exit', (code, signal) => {
      if (node.process !== child) return;
      process.stderr.write(
        `server ${node.shard}${node.replica} exited unexpectedly (${signal ?? code}); its last errors:\n${lastErrors(node)}\n`,
      );
      node.process = undefined;
      this.start(index).catch(() => {});
    });
    await waitUntilListening(node.http);
  }

  /** Kills the server with SIGKILL. */
  async kill(index: number): Promise<void> {
    const node = this.#nodeAt(index);
    const child = node.process;
    node.process = undefined; // an expected exit
    await kill(child);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#nodes.map((_, index) => this.kill(index)), kill(this.#keeper)]);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #nodeAt(index: number): Node {
    const node = this.#nodes[index];
    if (node === undefined) throw new Error(`there is no node ${index}`);
    return node;
  }

  async #prepare(): Promise<void> {
    const ports = await findFreePorts(LAYOUT.length * 3 + 1);
    this.#keeperPort = ports.pop() ?? 0;
    for (const [index, [shard, replica]] of LAYOUT.entries()) {
      const [http = 0, tcp = 0, interserver = 0] = ports.slice(index * 3);
      const directory = join(this.#directory, `${shard}${replica}`);
      this.#nodes.push({ shard, replica, directory, http, tcp, interserver, process: undefined });
    }
    for (const node of this.#nodes) {
      mkdirSync(join(node.directory, 'data', 'tmp'), { recursive: true });
      writeFileSync(join(node.directory, 'users.xml'), USERS);
      writeFileSync(join(node.directory, 'config.xml'), this.#configOf(node));
    }
  }

  #startKeeper(): void {
    const file = join(this.#directory, 'zoo.cfg');
    const data = join(this.#directory, 'zookeeper');
    mkdirSync(data);
    writeFileSync(
      file,
      `tickTime=500\ndataDir=${data}\nclientPort=${this.#keeperPort}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n`,
    );
    const classes = ['/etc/zookeeper/conf', '/usr/share/java/*'].join(':');
    const options = ['-Xmx128m', '-Dzookeeper.root.logger=ERROR,CONSOLE', '-cp', classes];
    const main = 'org.apache.zookeeper.server.ZooKeeperServerMain';
    this.#keeper = spawn('java', [...options, main, file], { stdio: 'ignore' });
  }

  #configOf({ shard, replica, directory, http, tcp, interserver }: Node): string {
    const replicaOf = (node: Node) => `<replica><host>127.0.0.1</host><port>${node.tcp}</port></replica>`;
    const shards = [1, 2].map(
      number =>
        `<shard><internal_replication>true</internal_replication>${this.#nodes
          .filter(node => node.shard === number)
          .map(replicaOf)
          .join('')}</shard>`,
    );
    return `<yandex>
  <logger><level>warning</level><log>${directory}/log</log><errorlog>${directory}/errors</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${http}</http_port><tcp_port>${tcp}</tcp_port>
  <interserver_http_port>${interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
  <path>${directory}/data/</path><tmp_path>${directory}/data/tmp/</tmp_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <zookeeper>
    <node index="1"><host>127.0.0.1</host><port>${this.#keeperPort}</port></node>
    <session_timeout_ms>4000</session_timeout_ms>
  </zookeeper>
  <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
  <remote_servers><${CLUSTER}>${shards.join('')}</${CLUSTER}></remote_servers>
  <macros><shard>${shard}</shard><replica>${replica}</replica></macros>
</yandex>`;
  }
}

const USERS = `<yandex>
  <profiles><default><max_threads>2</max_threads></default></profiles>
  <quotas><default/></quotas>
  <users><default>
    <password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
  </default></users>
</yandex>`;

function lastErrors({ directory }: Node): string {
  const file = join(directory, 'errors');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(-12).join('\n') : 'none';
}

async function kill(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Below the range of ephemeral ports, because a restarted server needs the same ports again. */
async function findFreePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = 20_000 + Math.floor(Math.random() * 10_000); ports.length < count; port++) {
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    ports.push(port);
    server.close();
    await once(server, 'close');
  }
  return ports;
}

async function waitUntilListening(port: number): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const socket = connect(port, '127.0.0.1');
    const isListening = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isListening) return;
    await sleep(100);
  }
  throw new Error(`nothing listens on port ${port} after ${START_TIMEOUT_MS} ms`);
}
