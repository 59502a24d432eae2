// A connection on which a test writes exactly the bytes it wants, for what fetch would mend, add or refuse to send.
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawConnection {
  write(bytes: string | Buffer): void;
  /** The next answer that arrives. Answers to HEAD have no body, whatever their Content-Length says. */
  next(method?: string): Promise<RawAnswer>;
  /** Writes a request and reads its answer. */
  ask(request: string, method?: string): Promise<RawAnswer>;
  /** Resolves when the server has closed the connection. */
  readonly ended: Promise<void>;
  /** What has arrived and is part of no answer that was read. */
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
  let arrived = Buffer.alloc(0);
  let isOver = false;
  let wake: (() => void) | undefined;
  socket.on('data', (chunk: Buffer) => {
    arrived = Buffer.concat([arrived, chunk]);
    wake?.();
  });
  const ended = new Promise<void>(resolve => {
    socket.once('close', () => {
      isOver = true;
      wake?.();
      resolve();
    });
  });
  socket.on('error', () => {}); // a reset is an end, and `close` follows it

  const next = async (method = 'GET'): Promise<RawAnswer> => {
    for (;;) {
      const parsed = parseAnswer(arrived, method === 'HEAD');
      if (parsed !== undefined) {
        arrived = arrived.subarray(parsed.length);
        return parsed.answer;
      }
      if (isOver) throw new Error(`the connection ended within an answer: ${arrived.toString('latin1')}`);
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
    rest: () => arrived.toString('latin1'),
    close: () => void socket.destroy(),
  };
}

/** Opens a connection, asks once, closes it. */
export async function askRaw(url: string, request: string): Promise<RawAnswer> {
  const connection = await openConnection(url);
  try {
    return await connection.ask(request);
  } finally {
    connection.close();
  }
}

/** The bytes of a request: `line` is what stands before HTTP/1.1. */
export function rawRequest(line: string, headers: Record<string, string> = {}, body = ''): string {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

function parseAnswer(
  bytes: Buffer,
  isHead: boolean,
): { readonly answer: RawAnswer; readonly length: number } | undefined {
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
  return { answer: { status, headers, body: bytes.toString('utf8', bodyStart, length) }, length };
}
