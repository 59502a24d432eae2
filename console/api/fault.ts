// What went wrong, in the API's own words, or in ours where no answer came.

export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: string;
  /** The parameter at fault, where one is. */
  readonly param: string | undefined;
  /** When it may be worth trying again, where that was said. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, param?: string, retryAfterSeconds?: number) {
    super(message);
    this.code = code;
    this.param = param;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export async function readFault(response: Response): Promise<Fault> {
  const retryAfter = Number(response.headers.get('Retry-After') ?? Number.NaN);
  const retryAfterSeconds = Number.isNaN(retryAfter) ? undefined : retryAfter;
  try {
    const { error } = (await response.json()) as {
      error: { code: string; message: string; param?: string };
    };
    return new Fault(error.code, error.message, error.param, retryAfterSeconds);
  } catch {
    // A proxy in between answers in its own way.
    return new Fault('unexpected', `the answer was ${response.status} ${response.statusText}`.trim());
  }
}

/** The answer was cut off, or is none of the API. */
export function unreadable(): Fault {
  return new Fault(
    'unreadable',
    'the answer cannot be read: it was cut off, or is not of this server',
    undefined,
    5,
  );
}

export function unusableToken(): Fault {
  return new Fault('unauthorized', 'this cannot be a token: it holds a character that no token has');
}

export function unreachable(): Fault {
  return new Fault('unreachable', 'the server cannot be reached', undefined, 5);
}
