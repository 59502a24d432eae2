// A network between Dendro and ClickHouse that fails in the ways networks and servers do. It passes bytes on; it knows of
// HTTP only how to answer an error in a server's place.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';

export type Fault =
  | 'none'
  /** Nobody listens. */
  | 'refused'
  /** The connection is broken off when a request comes. */
  | 'reset'
  /** A request is taken, and never answered. */
  | 'silent'
  /** A request is done, and the answer takes its time to begin. */
  | 'late'
  /** The headers of the answer come at once, and its body byte by byte. */
  | 'dripping'
  /** The headers of the answer come at once, and its body never. */
  | 'stalling'
  /** The request arrives and is done; its answer breaks off at the first byte. */
  | 'answer lost'
  /** The answer breaks off in its middle. */
  | 'answer truncated'
  /** A request that holds the word `oddly` is answered by a page of the proxy's own; others pass. */
  | 'odd answer'
  /** ClickHouse says that its disk is full. */
  | 'disk full'
  /** ClickHouse says whatever has this number. */
  | `error ${number}`;

const BAD_GATEWAY =
  'HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 20\r\nConnection: close\r\n\r\n<h1>Bad Gateway</h1>';

/** A ping is just waited for. */
const LATE_MS = 2_500;
const DRIP_MS = 100;

export class FaultyProxy {
  readonly #target: { host: string; port: number };
  #server: Server | undefined;
  #port = 0;
  #fault: Fault = 'none';
  readonly #sockets = new Set<Socket>();

  private constructor(target: URL) {
    this.#target = { host: target.hostname, port: Number(target.port) };
  }

  static async open(target: ClickHouseUrl): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(new URL(target.urls[0] ?? ''));
    await proxy.#listen();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** From now on; connections that are open are broken off. */
  async set(fault: Fault): Promise<void> {
    this.#fault = fault;
    this.#breakOff();
    if (fault === 'refused') await this.close();
    else if (this.#server === undefined) await this.#listen();
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#breakOff();
    if (server === undefined) return;
    server.close();
    await once(server, 'close');
  }

  async #listen(): Promise<void> {
    this.#server = createServer(socket => this.#pass(socket)).listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #breakOff(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #pass(caller: Socket): void {
    const fault = this.#fault;
    this.#keep(caller);
    if (fault === 'silent') return void caller.resume();
    if (fault === 'reset') return void caller.once('data', () => caller.resetAndDestroy());
    const error = fault === 'disk full' ? 243 : Number(/^error (\d+)$/.exec(fault)?.[1] ?? 0);
    if (error > 0) return void caller.on('data', () => caller.end(answerOf(error)));
    const server = connect(this.#target);
    this.#keep(server);
    caller.on('data', (bytes: Buffer) => {
      if (fault === 'odd answer' && bytes.includes('oddly')) caller.end(BAD_GATEWAY);
      else server.write(bytes);
    });
    caller.once('close', () => server.destroy());
    server.once('close', () => caller.destroy());
    let lastDrop = Promise.resolve();
    const drip = (bytes: Buffer) => {
      const body = endOfHead(bytes);
      lastDrop = lastDrop.then(async () => {
        caller.write(bytes.subarray(0, body));
        for (let i = body; i < bytes.length && !caller.destroyed; i++) {
          await sleep(DRIP_MS);
          caller.write(bytes.subarray(i, i + 1));
        }
      });
    };
    server.on('data', (bytes: Buffer) => {
      if (fault === 'none' || fault === 'odd answer') caller.write(bytes);
      else if (fault === 'late') setTimeout(() => caller.write(bytes), LATE_MS).unref();
      else if (fault === 'dripping') drip(bytes);
      else if (fault === 'stalling') caller.write(bytes.subarray(0, endOfHead(bytes)));
      else if (fault === 'answer lost') caller.destroy();
      else caller.end(bytes.subarray(0, Math.max(1, bytes.length - 20)), () => caller.destroy());
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }
}

/** Where the body begins, in what a server writes at once; 0 where there are no headers in it. */
function endOfHead(bytes: Buffer): number {
  return bytes.toString('latin1', 0, 5) === 'HTTP/' ? bytes.indexOf('\r\n\r\n') + 4 : 0;
}

function answerOf(code: number): string {
  const body = `Code: ${code}. DB::Exception: It cannot be done. (OF_THE_TESTS) (version 26.5.1.1)\n`;
  return (
    `HTTP/1.1 500 Internal Server Error\r\nX-ClickHouse-Exception-Code: ${code}\r\n` +
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  );
}
