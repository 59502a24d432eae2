// A real cluster on this machine: two shards of two replicas each, and the ZooKeeper that replicas agree by, from Debian's
// packages, each a process of its own that can be killed and started again.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const CLUSTER = 'logs';
/** Shard and replica of each server. */
const PLACES = [
  [1, 'a'],
  [1, 'b'],
  [2, 'a'],
  [2, 'b'],
] as const;
const READY_MS = 30_000;

interface Node {
  readonly shard: number;
  readonly replica: string;
  readonly folder: string;
  readonly http: number;
  readonly tcp: number;
  readonly interserver: number;
  process: ChildProcess | undefined;
}

export class Cluster {
  readonly #folder = mkdtempSync(join(tmpdir(), 'dendro-cluster-'));
  readonly #nodes: Node[] = [];
  #keeperPort = 0;
  #keeper: ChildProcess | undefined;

  static async start(): Promise<Cluster> {
    const cluster = new Cluster();
    try {
      await cluster.#prepare();
      cluster.#startKeeper();
      await untilListening(cluster.#keeperPort);
      await Promise.all(cluster.#nodes.map((_, index) => cluster.start(index)));
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Of the servers' HTTP interfaces: 0 and 1 are the first shard's replicas, 2 and 3 the second's. */
  get ports(): number[] {
    return this.#nodes.map(({ http }) => http);
  }

  async start(index: number): Promise<void> {
    const node = this.#nodeAt(index);
    if (node.process !== undefined) return;
    const child = spawn('clickhouse-server', [`--config-file=${join(node.folder, 'config.xml')}`], {
      cwd: node.folder,
      stdio: 'ignore',
    });
    node.process = child;
    // A server of 2018 may end by itself on a machine under load; like a service manager's, it is started again.
    child.once('exit', (code, signal) => {
      if (node.process !== child) return;
      process.stderr.write(
        `server ${node.shard}${node.replica} ended by itself: ${signal ?? code}; its last words:\n${lastWords(node)}\n`,
      );
      node.process = undefined;
      this.start(index).catch(() => {});
    });
    await untilListening(node.http);
  }

  /** As a power cut would. */
  async kill(index: number): Promise<void> {
    const node = this.#nodeAt(index);
    const child = node.process;
    node.process = undefined; // its end is meant
    await kill(child);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#nodes.map((_, index) => this.kill(index)), kill(this.#keeper)]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #nodeAt(index: number): Node {
    const node = this.#nodes[index];
    if (node === undefined) throw new Error(`there is no node ${index}`);
    return node;
  }

  async #prepare(): Promise<void> {
    const ports = await findFreePorts(PLACES.length * 3 + 1);
    this.#keeperPort = ports.pop() ?? 0;
    for (const [index, [shard, replica]] of PLACES.entries()) {
      const [http = 0, tcp = 0, interserver = 0] = ports.slice(index * 3);
      const folder = join(this.#folder, `${shard}${replica}`);
      this.#nodes.push({ shard, replica, folder, http, tcp, interserver, process: undefined });
    }
    for (const node of this.#nodes) {
      mkdirSync(join(node.folder, 'data', 'tmp'), { recursive: true });
      writeFileSync(join(node.folder, 'users.xml'), USERS);
      writeFileSync(join(node.folder, 'config.xml'), this.#configOf(node));
    }
  }

  #startKeeper(): void {
    const file = join(this.#folder, 'zoo.cfg');
    const data = join(this.#folder, 'zookeeper');
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

  #configOf({ shard, replica, folder, http, tcp, interserver }: Node): string {
    const replicaOf = (node: Node) => `<replica><host>127.0.0.1</host><port>${node.tcp}</port></replica>`;
    const shards = [1, 2].map(
      number =>
        `<shard><internal_replication>true</internal_replication>${this.#nodes
          .filter(node => node.shard === number)
          .map(replicaOf)
          .join('')}</shard>`,
    );
    return `<yandex>
  <logger><level>warning</level><log>${folder}/log</log><errorlog>${folder}/errors</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${http}</http_port><tcp_port>${tcp}</tcp_port>
  <interserver_http_port>${interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
  <path>${folder}/data/</path><tmp_path>${folder}/data/tmp/</tmp_path>
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

function lastWords({ folder }: Node): string {
  const file = join(folder, 'errors');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(-12).join('\n') : 'none';
}

async function kill(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Below those that the system gives to whoever connects: a server that is started again needs its own once more. */
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

async function untilListening(port: number): Promise<void> {
  const giveUpAt = performance.now() + READY_MS;
  while (performance.now() < giveUpAt) {
    const socket = connect(port, '127.0.0.1');
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isThere) return;
    await sleep(100);
  }
  throw new Error(`nobody listens on port ${port} after ${READY_MS} ms`);
}
