// A TCP proxy between Dendro and ClickHouse that simulates the faults of networks and servers. It forwards bytes; the
// only HTTP that it writes itself are error responses.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { findFreePort } from '../support/process.ts';

export type Fault =
  | 'none'
  /** The port is closed. */
  | 'refused'
  /** The connection is reset when a request arrives. */
  | 'reset'
  /** The request is read and not forwarded; no response is sent. */
  | 'silent'
  /** The request is forwarded; the response is delayed by `LATE_MS`. */
  | 'late'
  /** The headers of the response are sent at once, its body one byte every `DRIP_MS`. */
  | 'dripping'
  /** The headers of the response are sent at once, its body never. */
  | 'stalling'
  /** The request is forwarded; the connection is closed instead of a response. */
  | 'response lost'
  /** The connection is closed within the response. */
  | 'response truncated'
  /** The response to a request that contains the trigger is an HTML page; other requests are forwarded. */
  | 'error page'
  /** The body of a request that contains the trigger is forwarded after `SLOW_MS`; everything else is forwarded at once. */
  | 'slow'
  /** The response is ClickHouse's error for a full disk. */
  | 'disk full'
  /** The response is the ClickHouse error with this code. */
  | `error ${number}`;

export const ERROR_PAGE_TRIGGER = 'error_page_please';
/** Longer than a ping may take, including the pause before it. */
const SLOW_MS = 6_000;

const BAD_GATEWAY =
  'HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 20\r\nConnection: close\r\n\r\n<h1>Bad Gateway</h1>';

/** Below the time limit of a ping, so that the host stays up. */
const LATE_MS = 2_500;
const DRIP_MS = 100;

export class FaultyProxy {
  readonly #target: { host: string; port: number };
  #server: Server | undefined;
  #port = 0;
  #fault: Fault = 'none';
  #trigger = ERROR_PAGE_TRIGGER;
  readonly #sockets = new Set<Socket>();

  private constructor(target: URL) {
    this.#target = { host: target.hostname, port: Number(target.port) };
  }

  static async open(target: ClickHouseUrl): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(new URL(target.urls[0] ?? ''));
    proxy.#port = await findFreePort(); // it is closed and opened again
    await proxy.#listen();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Sets the fault of new connections, and closes the open ones. */
  async set(fault: Fault, trigger = ERROR_PAGE_TRIGGER): Promise<void> {
    this.#fault = fault;
    this.#trigger = trigger;
    this.#closeConnections();
    if (fault === 'refused') await this.close();
    else if (this.#server === undefined) await this.#listen();
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#closeConnections();
    if (server === undefined) return;
    server.close();
    await once(server, 'close');
  }

  async #listen(): Promise<void> {
    this.#server = createServer(socket => this.#accept(socket)).listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  #closeConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(caller: Socket): void {
    const fault = this.#fault;
    this.#track(caller);
    if (fault === 'silent') return void caller.resume();
    if (fault === 'reset') return void caller.once('data', () => caller.resetAndDestroy());
    const errorCode = fault === 'disk full' ? 243 : Number(/^error (\d+)$/.exec(fault)?.[1] ?? 0);
    if (errorCode > 0) return void caller.on('data', () => caller.end(errorResponse(errorCode)));
    const server = connect(this.#target);
    this.#track(server);
    caller.on('data', (bytes: Buffer) => {
      if (!bytes.includes(this.#trigger)) server.write(bytes);
      else if (fault === 'error page') caller.end(BAD_GATEWAY);
      else if (fault === 'slow') forwardBodyLate(server, bytes);
      else server.write(bytes);
    });
    caller.once('close', () => server.destroy());
    server.once('close', () => caller.destroy());
    let lastDrip = Promise.resolve();
    const drip = (bytes: Buffer) => {
      const bodyStart = headersEnd(bytes);
      lastDrip = lastDrip.then(async () => {
        caller.write(bytes.subarray(0, bodyStart));
        for (let i = bodyStart; i < bytes.length && !caller.destroyed; i++) {
          await sleep(DRIP_MS);
          caller.write(bytes.subarray(i, i + 1));
        }
      });
    };
    server.on('data', (bytes: Buffer) => {
      if (fault === 'none' || fault === 'error page' || fault === 'slow') caller.write(bytes);
      else if (fault === 'late') setTimeout(() => caller.write(bytes), LATE_MS).unref();
      else if (fault === 'dripping') drip(bytes);
      else if (fault === 'stalling') caller.write(bytes.subarray(0, headersEnd(bytes)));
      else if (fault === 'response lost') caller.destroy();
      else caller.end(bytes.subarray(0, Math.max(1, bytes.length - 20)), () => caller.destroy());
    });
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }
}

/** The offset after the headers, or 0 if the bytes contain none. */
function headersEnd(bytes: Buffer): number {
  return bytes.toString('latin1', 0, 5) === 'HTTP/' ? bytes.indexOf('\r\n\r\n') + 4 : 0;
}

/** The headers go at once, because the server closes a connection that is idle for too long. */
function forwardBodyLate(server: Socket, bytes: Buffer): void {
  const headersEndAt = bytes.indexOf('\r\n\r\n');
  const bodyStart = headersEndAt === -1 ? 0 : headersEndAt + 4;
  server.write(bytes.subarray(0, bodyStart));
  setTimeout(() => server.write(bytes.subarray(bodyStart)), SLOW_MS).unref();
}

function errorResponse(code: number): string {
  const body = `Code: ${code}. DB::Exception: Simulated by the proxy. (SIMULATED_ERROR) (version 26.5.1.1)\n`;
  return (
    `HTTP/1.1 500 Internal Server Error\r\nX-ClickHouse-Exception-Code: ${code}\r\n` +
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  );
}
