// The responses that are not completely written to their connections. Limits their bytes, in total and for each token, and
// disconnects clients that read too slowly: otherwise a few clients that read large responses slowly could take all memory.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DendroError } from '../domain/errors.ts';
import { MAX_LAG_BYTES, MIN_READ_DEADLINE_MS } from '../domain/limits.ts';
import { MemoryShares } from '../system/memory-shares.ts';
import type { Timer } from '../system/timer.ts';
import { onConnectionClose } from './connection.ts';

export interface UnsentLimits {
  readonly maxBytes: number;
  /** The rate at which a client must read; 0: no minimum. */
  readonly minBytesPerSecond: number;
}

/** Of one connection: when it is closed, in milliseconds of the timer, unless it sends more until then. */
interface Deadline {
  at: number;
  /** How many responses are not completely sent. */
  responses: number;
  cancel: () => void;
}

const RETRY_AFTER_SECONDS = 5;

export class UnsentResponses {
  readonly #minBytesPerSecond: number;
  readonly #deadlineMs: number;
  readonly #timer: Timer;
  readonly #deadlines = new WeakMap<Socket, Deadline>();
  readonly #memory: MemoryShares;

  constructor({ maxBytes, minBytesPerSecond }: UnsentLimits, timer: Timer) {
    this.#minBytesPerSecond = minBytesPerSecond;
    this.#deadlineMs = Math.max(MIN_READ_DEADLINE_MS, (1000 * MAX_LAG_BYTES) / minBytesPerSecond);
    this.#memory = new MemoryShares(maxBytes);
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

  /**
   * Counts a response until it is sent or its connection closes, and closes the connection if the client reads too slowly. Call the
   * returned function with the bytes that were written. `bytes`: the size in memory, 0 for a stream.
   */
  track(rawResponse: ServerResponse, caller: string, bytes: number): (sentBytes: number) => void {
    const { socket } = rawResponse.req;
    const deadline = this.#deadlineOf(socket);
    let isTracked = true;
    const end = () => {
      if (!isTracked) return;
      isTracked = false;
      this.#memory.release(caller, bytes);
      if (--deadline.responses === 0) deadline.cancel();
    };
    this.#memory.reserve(caller, bytes);
    const cancel = onConnectionClose(socket, end);
    rawResponse.once('finish', () => {
      cancel();
      end();
    });
    return sentBytes => {
      const extendedAt = deadline.at + (1000 * sentBytes) / this.#minBytesPerSecond;
      deadline.at = Math.min(extendedAt, this.#timer.now() + this.#deadlineMs);
    };
  }

  /** The deadline is that of the connection, because a response may wait until the client has read the one before it. */
  #deadlineOf(socket: Socket): Deadline {
    const deadline = this.#deadlines.get(socket) ?? { at: 0, responses: 0, cancel: () => {} };
    this.#deadlines.set(socket, deadline);
    if (deadline.responses++ === 0 && this.#minBytesPerSecond > 0) {
      deadline.at = this.#timer.now() + this.#deadlineMs;
      this.#watch(socket, deadline);
    }
    return deadline;
  }

  #watch(socket: Socket, deadline: Deadline): void {
    deadline.cancel = this.#timer.after(deadline.at - this.#timer.now(), () => {
      if (this.#timer.now() < deadline.at) this.#watch(socket, deadline);
      else socket.destroy();
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
