// The servers that may be asked. One that does not answer a ping is passed over until it does; what was on its way to it
// moves to the next, within the time limit that it began with. An odd answer to one question breaks off no other.
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { isKilled, isTransient } from './errors.ts';
import { InFlight } from './in-flight.ts';

const PING_EVERY_MS = 1_000;
/** A server that does not say as much as "Ok." within this is gone, whatever was asked of it. */
const PING_TIMEOUT_MS = 3_000;
/** ClickHouse closes idle connections after 3 s in its oldest versions. */
const IDLE_SOCKET_MS = 2_000;
/** Of one silent connection. The time limit of a query is kept apart from this, and always shorter. */
const SILENCE_MS = 3_700_000;

class Host {
  readonly client: ClickHouseClient;
  isUp = true;
  /** Broken off when the host is found gone. */
  readonly inFlight = new InFlight();

  constructor(url: string, address: ClickHouseUrl, connections: number) {
    this.client = createClient({
      url,
      username: address.reader.user,
      password: address.reader.password,
      database: address.database,
      application: 'dendro',
      max_open_connections: connections,
      request_timeout: SILENCE_MS,
      keep_alive: { enabled: true, idle_socket_ttl: IDLE_SOCKET_MS },
      compression: { response: true, request: false },
      log: { level: ClickHouseLogLevel.OFF }, // it would write to the console, and quotes statements
    });
  }
}

/** What one attempt is given. */
export interface Attempt {
  readonly client: ClickHouseClient;
  readonly signal: AbortSignal;
}

export class Hosts {
  readonly #hosts: readonly Host[];
  #turn = 0;
  #pinging: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(address: ClickHouseUrl, connections: number) {
    this.#hosts = address.urls.map(url => new Host(url, address, connections));
  }

  /** As far as is known. */
  get isReachable(): boolean {
    return this.#hosts.some(host => host.isUp);
  }

  /**
   * Tries one host after another. `work` must be safe to repeat: it may have been done by a host whose answer was lost.
   * Throws the last host's error, or the signal's reason.
   */
  async run<T>(work: (attempt: Attempt) => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#watch();
    let lastError: unknown = new Error('no host answers');
    for (const host of this.#inOrder()) {
      // A connection that was kept open may be closed just as it is used again: that tells nothing about the host.
      for (let attempts = 0; attempts < 2; attempts++) {
        try {
          return await this.#attempt(host, work, signal);
        } catch (error) {
          signal.throwIfAborted();
          if (!isTransient(error) || isKilled(error)) throw error;
          lastError = error;
          if (systemCodeOf(error) === 'ECONNREFUSED') host.isUp = false;
          if (!isReset(error)) break;
        }
      }
    }
    throw lastError;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#pinging);
    for (const host of this.#hosts) {
      await host.inFlight.close(new Error('the store is closed'));
      await host.client.close();
    }
  }

  #attempt<T>(host: Host, work: (attempt: Attempt) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    return host.inFlight.run(async lost => {
      try {
        return await work({ client: host.client, signal: AbortSignal.any([signal, lost]) });
      } catch (error) {
        lost.throwIfAborted();
        throw error;
      }
    });
  }

  /** Those that are up, each in turn the first. None is: all of them, since a ping may be a second old. */
  #inOrder(): Host[] {
    const up = this.#hosts.filter(host => host.isUp);
    const hosts = up.length > 0 ? up : [...this.#hosts];
    const start = this.#turn++ % hosts.length;
    return [...hosts.slice(start), ...hosts.slice(0, start)];
  }

  /** From the first question on, whether or not anybody asks another. */
  #watch(): void {
    if (this.#closed || this.#pinging !== undefined) return;
    this.#pinging = setTimeout(async () => {
      await Promise.all(this.#hosts.map(host => this.#ping(host)));
      this.#pinging = undefined;
      this.#watch();
    }, PING_EVERY_MS).unref();
  }

  async #ping(host: Host): Promise<void> {
    const { success } = await host.client.ping({
      select: false,
      abort_signal: AbortSignal.timeout(PING_TIMEOUT_MS),
    });
    host.isUp = success;
    if (!success && !this.#closed) host.inFlight.abortAll(new Error('the host is gone'));
  }
}

function isReset(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'ECONNRESET' || code === 'EPIPE' || (error as Error).message === 'socket hang up';
}

function systemCodeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
