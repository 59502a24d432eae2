// The responses that clients have not read completely. Limits their bytes in total, and disconnects clients that read too slowly:
// otherwise a few clients that read large responses slowly could take all memory.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import type { Timer } from '../system/timer.ts';

export interface UnsentLimits {
  readonly maxBytes: number;
  /** The rate at which a client must read; 0: no minimum. */
  readonly minBytesPerSecond: number;
}

/** A response that is being sent. */
interface UnsentResponse {
  readonly rawResponse: ServerResponse;
  readonly bytes: number;
}

interface Connection {
  readonly responses: Set<UnsentResponse>;
  /** Bytes that were written since the last rate check. */
  sentBytes: number;
  /** How many bytes more than the minimum rate requires were written before the last rate check. */
  leadBytes: number;
  cancelRateCheck: () => void;
}

/** How often the rate of each connection is checked. */
export const RATE_PERIOD_MS = 15_000;

/**
 * Bytes that were written faster than required count for later checks, up to this limit. The server sees what the operating
 * system takes, not what the client reads: Linux takes up to 4 MB ahead of the network, and the client's system buffers more.
 * Then it takes nothing until the client has read a large part of it.
 */
export const MAX_LEAD_BYTES = 8 * 1024 * 1024;

const RETRY_AFTER_SECONDS = 5;

export class UnsentResponses {
  readonly #limits: UnsentLimits;
  readonly #timer: Timer;
  readonly #connections = new Map<Socket, Connection>();
  #bytes = 0;

  constructor(limits: UnsentLimits, timer: Timer) {
    this.#limits = limits;
    this.#timer = timer;
  }

  /** Unsent bytes, and the results whose responses are being created. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws `unavailable` if the limit is reached. Called before a query runs. */
  readonly requireRoom = (): void => {
    if (this.#bytes >= this.#limits.maxBytes) throw noRoom();
  };

  /**
   * Counts a result until the returned function is called. Throws `unavailable` if it does not fit. A result that is alone always
   * fits: otherwise a result above the limit would never be sent.
   */
  reserve(bytes: number): () => void {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#limits.maxBytes) throw noRoom();
    this.#bytes += bytes;
    return () => {
      this.#bytes -= bytes;
    };
  }

  /**
   * Counts a response until it is sent or its connection closes, and checks how fast the client reads it. The caller calls the
   * returned function with the size of each slice that it writes.
   */
  track(rawResponse: ServerResponse, bytes: number): (sliceBytes: number) => void {
    const unsent: UnsentResponse = { rawResponse, bytes };
    const { socket } = rawResponse.req;
    const connection = this.#connections.get(socket) ?? this.#addConnection(socket);
    const isFirst = connection.responses.size === 0;
    this.#bytes += bytes;
    connection.responses.add(unsent);
    rawResponse.once('finish', () => this.#remove(connection, unsent));
    if (isFirst && this.#limits.minBytesPerSecond > 0) this.#checkRate(socket, connection);
    return sliceBytes => {
      connection.sentBytes += sliceBytes;
    };
  }

  /** A response that waits behind another one of its connection emits no `close`, so its socket is observed. */
  #addConnection(socket: Socket): Connection {
    const connection: Connection = {
      responses: new Set(),
      sentBytes: 0,
      leadBytes: 0,
      cancelRateCheck: () => {},
    };
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      for (const unsent of connection.responses) this.#remove(connection, unsent);
      this.#connections.delete(socket);
    });
    return connection;
  }

  #remove(connection: Connection, unsent: UnsentResponse): void {
    if (!connection.responses.delete(unsent)) return;
    this.#bytes -= unsent.bytes;
    if (connection.responses.size === 0) connection.cancelRateCheck();
  }

  /** Measures the connection, not the response: a response may wait until the client has read the one before it. */
  #checkRate(socket: Socket, connection: Connection): void {
    // Node assigns the socket to a response when the responses before it are sent. Only then can the client read it.
    const isSending = [...connection.responses].some(({ rawResponse }) => rawResponse.socket !== null);
    const requiredBytes = isSending ? (this.#limits.minBytesPerSecond * RATE_PERIOD_MS) / 1000 : 0;
    connection.cancelRateCheck = this.#timer.after(RATE_PERIOD_MS, () => {
      const leadBytes = connection.leadBytes + connection.sentBytes - requiredBytes;
      connection.leadBytes = Math.min(leadBytes, MAX_LEAD_BYTES);
      connection.sentBytes = 0;
      if (leadBytes < 0) socket.destroy();
      else this.#checkRate(socket, connection);
    });
  }
}

function noRoom(): DendroError {
  return new DendroError('unavailable', 'too many responses are waiting to be read; retry in a moment', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
