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
export interface UnsentResponse {
  readonly rawResponse: ServerResponse;
  readonly bytes: number;
  /** Bytes of the body that the operating system has taken. */
  sentBytes: number;
  cancelRateCheck: () => void;
}

/** Each time this has passed, the client must have read as much as the minimum rate requires. */
export const RATE_PERIOD_MS = 15_000;

const RETRY_AFTER_SECONDS = 5;

export class UnsentResponses {
  readonly #limits: UnsentLimits;
  readonly #timer: Timer;
  readonly #bySocket = new Map<Socket, Set<UnsentResponse>>();
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

  /** Counts a response until it is sent or its connection closes, and checks how fast the client reads it. */
  track(rawResponse: ServerResponse, bytes: number): UnsentResponse {
    const unsent: UnsentResponse = { rawResponse, bytes, sentBytes: 0, cancelRateCheck: () => {} };
    const { socket } = rawResponse.req;
    this.#bytes += bytes;
    this.#ofSocket(socket).add(unsent);
    rawResponse.once('finish', () => this.#remove(socket, unsent));
    if (this.#limits.minBytesPerSecond > 0) this.#checkRate(socket, unsent);
    return unsent;
  }

  /** A response that waits behind another one of its connection emits no `close`, so its socket is observed. */
  #ofSocket(socket: Socket): Set<UnsentResponse> {
    const existing = this.#bySocket.get(socket);
    if (existing !== undefined) return existing;
    const responses = new Set<UnsentResponse>();
    this.#bySocket.set(socket, responses);
    socket.once('close', () => {
      for (const unsent of responses) this.#remove(socket, unsent);
      this.#bySocket.delete(socket);
    });
    return responses;
  }

  #remove(socket: Socket, unsent: UnsentResponse): void {
    if (!this.#bySocket.get(socket)?.delete(unsent)) return;
    this.#bytes -= unsent.bytes;
    unsent.cancelRateCheck();
  }

  #checkRate(socket: Socket, unsent: UnsentResponse): void {
    const { sentBytes, rawResponse } = unsent;
    const requiredBytes = (this.#limits.minBytesPerSecond * RATE_PERIOD_MS) / 1000;
    // Node assigns the socket to a response when the responses before it are sent. Only then can the client read it.
    const isWaiting = rawResponse.socket === null;
    unsent.cancelRateCheck = this.#timer.after(RATE_PERIOD_MS, () => {
      if (!isWaiting && unsent.sentBytes - sentBytes < requiredBytes) socket.destroy();
      else this.#checkRate(socket, unsent);
    });
  }
}

function noRoom(): DendroError {
  return new DendroError('unavailable', 'too many responses are waiting to be read; retry in a moment', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
