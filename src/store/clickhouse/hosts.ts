// The ClickHouse hosts, with round robin and failover. A host that refuses a connection or does not respond to a ping is skipped
// until it responds to a ping. When a ping fails, the host's requests in flight move to the next host, within their original time
// limit. After an unexpected response, such as an error page of a proxy, only that request moves, and the host stays in use.
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { every, type RepeatingJob, systemTimer } from '../../system/timer.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { storeClosed } from '../query-queue.ts';
import { isKilled, isTransient } from './errors.ts';

const PING_INTERVAL_MS = 1_000;
const PING_TIMEOUT_MS = 3_000;
/** Below 3 s, after which the oldest versions of ClickHouse close idle connections. */
const IDLE_SOCKET_TTL_MS = 2_000;
/** Longer than any query may run: queries and inserts have time limits of their own. */
const SOCKET_TIMEOUT_MS = 3_700_000;

class Host {
  readonly client: ClickHouseClient;
  /** Host and port. */
  readonly name: string;
  isUp = true;
  /**
   * Requests to this host. Each has an AbortController of its own: in Node 20 every AbortSignal.any() with one long-lived signal leaks a
   * little memory.
   */
  readonly #inFlight = new Map<AbortController, Promise<unknown>>();

  constructor(url: string, { reader, database }: ClickHouseUrl, maxConnections: number) {
    this.name = new URL(url).host;
    this.client = createClient({
      url,
      // The default credentials of a request. Inserts pass the credentials of the writer with each request (writer.ts).
      username: reader.user,
      password: reader.password,
      database,
      application: 'dendro',
      max_open_connections: maxConnections,
      request_timeout: SOCKET_TIMEOUT_MS,
      keep_alive: { enabled: true, idle_socket_ttl: IDLE_SOCKET_TTL_MS },
      compression: { response: true, request: false },
      log: { level: ClickHouseLogLevel.OFF }, // the client would log SQL to the console
    });
  }

  async run<T>(work: (attempt: Attempt) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const controller = new AbortController();
    const running = work({ client: this.client, signal: AbortSignal.any([signal, controller.signal]) });
    this.#inFlight.set(controller, running);
    try {
      return await running;
    } catch (error) {
      controller.signal.throwIfAborted(); // throws why the request was aborted, not the client's error about the abort
      throw error;
    } finally {
      this.#inFlight.delete(controller);
    }
  }

  /** Aborts the requests that run now. Resolves when they have ended. */
  async abort(reason: Error): Promise<void> {
    for (const controller of this.#inFlight.keys()) controller.abort(reason);
    await Promise.allSettled(this.#inFlight.values());
  }
}

export interface Attempt {
  readonly client: ClickHouseClient;
  /** Aborts with the caller's signal, when a ping of the host fails, and when the hosts are closed. */
  readonly signal: AbortSignal;
}

export class Hosts {
  readonly #hosts: readonly Host[];
  #requests = 0;
  #pings: RepeatingJob | undefined;
  #isClosed = false;

  constructor(clickhouse: ClickHouseUrl, maxConnectionsPerHost: number) {
    this.#hosts = clickhouse.urls.map(url => new Host(url, clickhouse, maxConnectionsPerHost));
  }

  /** Whether any host was up when it was last tried. */
  get isReachable(): boolean {
    return this.#hosts.some(host => host.isUp);
  }

  /** Whether each host was up when it was last tried. */
  get isUpByHost(): ReadonlyMap<string, boolean> {
    return new Map(this.#hosts.map(({ name, isUp }) => [name, isUp]));
  }

  /**
   * Tries the hosts one after another. `work` must be safe to repeat: a host may have done it and lost the response.
   * Throws the error of the last host, or the reason of the signal.
   */
  async run<T>(work: (attempt: Attempt) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#isClosed) throw storeClosed();
    this.#startPinging();
    let lastError: unknown = new Error('no host responds');
    for (const host of this.#inOrder()) {
      // Twice, because a server can close an idle connection at the moment in which it is reused. The host is up in that case.
      for (let attempts = 0; attempts < 2; attempts++) {
        try {
          return await host.run(work, signal);
        } catch (error) {
          signal.throwIfAborted();
          if (this.#isClosed || !isTransient(error) || isKilled(error)) throw error;
          lastError = error;
          if (systemCodeOf(error) === 'ECONNREFUSED') host.isUp = false;
          if (!isConnectionReset(error)) break;
        }
      }
    }
    throw lastError;
  }

  /** Aborts running and later requests. Can be called twice. */
  async close(): Promise<void> {
    this.#isClosed = true;
    void this.#pings?.stop();
    for (const host of this.#hosts) {
      await host.abort(storeClosed());
      await host.client.close();
    }
  }

  /** Round robin over the hosts that are up. If none is, over all of them: one may be up again since its last ping. */
  #inOrder(): Host[] {
    const up = this.#hosts.filter(host => host.isUp);
    const hosts = up.length > 0 ? up : [...this.#hosts];
    const start = this.#requests++ % hosts.length;
    return [...hosts.slice(start), ...hosts.slice(0, start)];
  }

  /**
   * From the first request on, pings all hosts, with a pause of 1 s between two rounds. So `isReachable` is right without further
   * requests.
   */
  #startPinging(): void {
    this.#pings ??= every(systemTimer, PING_INTERVAL_MS, async () => {
      await Promise.all(this.#hosts.map(host => this.#ping(host)));
    });
  }

  async #ping(host: Host): Promise<void> {
    const { success } = await host.client.ping({
      select: false,
      abort_signal: AbortSignal.timeout(PING_TIMEOUT_MS),
    });
    host.isUp = success;
    if (!success && !this.#isClosed) void host.abort(new Error('the host does not respond'));
  }
}

function isConnectionReset(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'ECONNRESET' || code === 'EPIPE' || (error as Error).message === 'socket hang up';
}

function systemCodeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
