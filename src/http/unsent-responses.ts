// The responses that are not completely written to their connections. Limits their bytes, in total and for each token, and
// disconnects clients that read too slowly: otherwise a few clients that read large responses slowly could take all memory.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import { MemoryShares } from '../system/memory-shares.ts';
import type { Timer } from '../system/timer.ts';

export interface UnsentLimits {
  readonly maxBytes: number;
  /** The rate at which a client must read; 0: no minimum. */
  readonly minBytesPerSecond: number;
}

/** A response that is being sent. */
export interface UnsentResponse {
  readonly rawResponse: ServerResponse;
  readonly connection: Connection;
  /** Identifies the token whose share of the memory it counts towards. */
  readonly caller: string;
  /** How many bytes of the response are still in memory. A stream counts as 0. */
  bytes: number;
}

interface Connection {
  readonly responses: Set<UnsentResponse>;
  /** Bytes that were written since the last rate check. */
  sentBytes: number;
  /** By how many bytes the connection was ahead of the minimum rate at the last rate check, at most MAX_LEAD_BYTES. */
  leadBytes: number;
  cancelRateCheck: () => void;
}

/** How often the rate of each connection is checked. */
export const RATE_PERIOD_MS = 15_000;

/**
 * A lead over the minimum rate counts in later checks, up to this limit. The server sees how fast the operating
 * system accepts bytes, not how fast the client reads them: Linux accepts up to 4 MB ahead of the network, and the client's system
 * buffers more. Once these buffers are full, Linux accepts nothing until the client has read a large part of them.
 */
export const MAX_LEAD_BYTES = 8 * 1024 * 1024;

const RETRY_AFTER_SECONDS = 5;

export class UnsentResponses {
  readonly #limits: UnsentLimits;
  readonly #timer: Timer;
  readonly #connections = new Map<Socket, Connection>();
  readonly #memory: MemoryShares;

  constructor(limits: UnsentLimits, timer: Timer) {
    this.#limits = limits;
    this.#memory = new MemoryShares(limits.maxBytes);
    this.#timer = timer;
  }

  /** Bytes of the unsent responses, and of the results whose responses are being created. */
  get bytes(): number {
    return this.#memory.held;
  }

  /** Throws `unavailable` if the caller has used up its share. Called before a query runs. */
  readonly requireRoom = (caller: string): void => {
    if (!this.#memory.hasRoom(caller)) throw noRoom();
  };

  /**
   * Counts a result until the returned function is called. Throws `unavailable` if it does not fit. If nothing else is counted,
   * every result fits: otherwise a result above the limit would never be sent.
   */
  reserve(caller: string, bytes: number): () => void {
    if (this.#memory.held === 0) this.#memory.reserve(caller, bytes);
    else if (!this.#memory.tryReserve(caller, bytes)) throw noRoom();
    return () => this.#memory.release(caller, bytes);
  }

  /** Counts a response until it is sent or its connection closes, and checks how fast the client reads it. */
  track(rawResponse: ServerResponse, caller: string, bytes: number): UnsentResponse {
    const { socket } = rawResponse.req;
    const connection = this.#connections.get(socket) ?? this.#addConnection(socket);
    const unsent: UnsentResponse = { rawResponse, connection, caller, bytes };
    const isFirst = connection.responses.size === 0;
    this.#memory.reserve(caller, bytes);
    connection.responses.add(unsent);
    rawResponse.once('finish', () => this.#remove(unsent));
    if (isFirst && this.#limits.minBytesPerSecond > 0) this.#checkRate(socket, connection);
    return unsent;
  }

  /** Called for each chunk that is written. For a response that is not sent in chunks: called once, when it is written. */
  countSent({ connection }: UnsentResponse, bytes: number): void {
    connection.sentBytes += bytes;
  }

  /** Called when a part of a response is freed. `bytes`: how many are still in memory. */
  reduceTo(unsent: UnsentResponse, bytes: number): void {
    if (!unsent.connection.responses.has(unsent)) return;
    this.#memory.release(unsent.caller, unsent.bytes - bytes);
    unsent.bytes = bytes;
  }

  /** Watches the socket: a response that waits behind another one emits no `close` when the connection closes. */
  #addConnection(socket: Socket): Connection {
    const connection: Connection = {
      responses: new Set(),
      sentBytes: 0,
      leadBytes: 0,
      cancelRateCheck: () => {},
    };
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      for (const unsent of connection.responses) this.#remove(unsent);
      this.#connections.delete(socket);
    });
    return connection;
  }

  #remove(unsent: UnsentResponse): void {
    const { connection, caller, bytes } = unsent;
    if (!connection.responses.delete(unsent)) return;
    this.#memory.release(caller, bytes);
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
  return new DendroError(
    'unavailable',
    'the responses that wait to be read have used up the memory share of this token; read them, or retry in a moment',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}
