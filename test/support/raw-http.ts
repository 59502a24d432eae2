// A raw connection for requests that fetch would correct, extend or refuse to send.
import { connect } from 'node:net';

export interface RawResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawConnection {
  write(bytes: string | Buffer): void;
  /** Reads the next response. A response to HEAD has no body, whatever its Content-Length. */
  next(method?: string): Promise<RawResponse>;
  /** Sends a request and reads its response. */
  ask(request: string, method?: string): Promise<RawResponse>;
  /** Resolves when the server has closed the connection. */
  readonly ended: Promise<void>;
  /** Received bytes that no `next` has returned. */
  rest(): string;
  close(): void;
}

export async function openConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  let received = Buffer.alloc(0);
  let isClosed = false;
  let wake: (() => void) | undefined;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake?.();
  });
  const ended = new Promise<void>(resolve => {
    socket.once('close', () => {
      isClosed = true;
      wake?.();
      resolve();
    });
  });
  socket.on('error', () => {}); // `close` follows a connection reset

  const next = async (method = 'GET'): Promise<RawResponse> => {
    for (;;) {
      const parsed = parseResponse(received, method === 'HEAD');
      if (parsed !== undefined) {
        received = received.subarray(parsed.length);
        return parsed.response;
      }
      if (isClosed)
        throw new Error(`the connection closed within a response: ${received.toString('latin1')}`);
      await new Promise<void>(resolve => {
        wake = resolve;
      });
    }
  };
  return {
    write: bytes => void socket.write(bytes),
    next,
    ask: (request, method = request.slice(0, request.indexOf(' '))) => {
      socket.write(request);
      return next(method);
    },
    ended,
    rest: () => received.toString('latin1'),
    close: () => void socket.destroy(),
  };
}

/** Opens a connection, sends one request, closes the connection. */
export async function sendRaw(url: string, request: string): Promise<RawResponse> {
  const connection = await openConnection(url);
  try {
    return await connection.ask(request);
  } finally {
    connection.close();
  }
}

/** Formats a request: `line` is the part before HTTP/1.1. */
export function rawRequest(line: string, headers: Record<string, string> = {}, body = ''): string {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

function parseResponse(
  bytes: Buffer,
  isHead: boolean,
): { readonly response: RawResponse; readonly length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  if (Number.isNaN(status)) throw new Error(`no status line: ${statusLine}`);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const mark = line.indexOf(':');
    headers[line.slice(0, mark).toLowerCase()] = line.slice(mark + 1).trim();
  }
  const bodyStart = headEnd + 4;
  const length = bodyStart + (isHead ? 0 : Number(headers['content-length'] ?? 0));
  if (bytes.length < length) return undefined;
  return { response: { status, headers, body: bytes.toString('utf8', bodyStart, length) }, length };
}
