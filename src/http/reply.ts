// An answer as data, and the one place that writes it to a socket.
import type { ServerResponse } from 'node:http';

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonReply(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers: { 'Content-Type': JSON_TYPE, ...headers }, body: JSON.stringify(body) };
}

/** Content-Length is always set, so HEAD tells it too; Node leaves the body out of an answer to HEAD. */
export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  const hasBody = status !== 204 && status !== 304;
  const length = hasBody ? { 'Content-Length': Buffer.byteLength(body) } : {};
  response.writeHead(status, { ...headers, ...length, 'X-Content-Type-Options': 'nosniff' });
  response.end(body);
}
