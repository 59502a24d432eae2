import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { readTlsPair } from '../../src/http/tls.ts';
import { API_KEY, startTestApp } from '../support/app.ts';
import { onlyLine, PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';
import { createSelfSigned } from '../support/self-signed.ts';
import { useApp } from '../support/use-app.ts';

/** Requests over TLS and trusts only this certificate. */
function getTrusting(
  ca: string,
  url: string,
  token: string,
): Promise<{ status: number; protocol: string | null }> {
  return new Promise((resolve, reject) => {
    const call = request(url, { ca, headers: { 'X-API-KEY': token } }, response => {
      const protocol = 'getProtocol' in response.socket ? connectionProtocol(response.socket) : null;
      response.resume().on('end', () => resolve({ status: response.statusCode ?? 0, protocol }));
    });
    call.on('error', reject).end();
  });
}

function connectionProtocol(socket: object): string | null {
  const { getProtocol } = socket as { getProtocol: () => string | null };
  return getProtocol.call(socket);
}

const directory = mkdtempSync(join(tmpdir(), 'dendro-tls-'));
const [pair, other] = [createSelfSigned(), createSelfSigned()];
const files = { cert: file('cert.pem', pair.cert), key: file('key.pem', pair.key) };
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

describe('a public listener with a certificate', { timeout: 60_000 }, () => {
  const app = useApp({ tls: files });

  const port = () => Number(new URL(app.url).port);

  test('serves a client that trusts the certificate', async () => {
    expect(app.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const call = `${app.url}/api/endpoints/query/logs.all?project=alpha`;
    expect(await getTrusting(pair.cert, call, API_KEY)).toEqual({ status: 200, protocol: 'TLSv1.3' });
    expect((await getTrusting(pair.cert, call, '')).status).toBe(401);
  });

  test.each([
    ['a page', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', 200],
    ['an error', 'GET /api/endpoints HTTP/1.1\r\nHost: a\r\n\r\n', 401],
    ['malformed HTTP', 'hello\r\n\r\n', 400],
  ])('tells browsers to use HTTPS only: %s', async (_, bytes, status) => {
    const socket = connectTls({ host: '127.0.0.1', port: port(), ca: pair.cert });
    socket.write(bytes);
    const [head] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    expect(head.toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head.toString()).toMatch(/^Strict-Transport-Security: max-age=31536000\r$/m);
  });

  test('presents the configured certificate', async () => {
    await expect(getTrusting(other.cert, `${app.url}/health`, '')).rejects.toThrow();
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)('rejects %s', async version => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: port(),
      ca: pair.cert,
      minVersion: version,
      maxVersion: version,
      ciphers: 'DEFAULT@SECLEVEL=0', // without it, the client could not offer this version
    });
    const outcome = await Promise.race([
      once(socket, 'secureConnect').then(() => 'connected'),
      once(socket, 'error').then(() => 'rejected'),
    ]).catch(() => 'rejected');
    socket.destroy();
    expect(outcome).toBe('rejected');
  });

  test('does not serve plain HTTP', async () => {
    const socket = connect(port(), '127.0.0.1');
    let response = '';
    socket.on('data', chunk => {
      response += chunk;
    });
    socket.on('error', () => {});
    socket.write(`GET /health HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${API_KEY}\r\n\r\n`);
    await once(socket, 'close');
    expect(response).not.toContain('HTTP/1.1 200');
  });

  /** Opens a connection and sends nothing. */
  const openSilently = async (portNumber: number) => {
    const socket = connect(portNumber, '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  const isClosedWithin = async (socket: Socket, ms: number) => {
    const gaveUp = new AbortController();
    const limit = setTimeout(() => gaveUp.abort(), ms);
    const closed = once(socket, 'close', { signal: gaveUp.signal }).then(
      () => true,
      () => false,
    );
    return closed.finally(() => clearTimeout(limit));
  };

  test.concurrent('closes a connection that never completes the TLS handshake', async () => {
    const socket = await openSilently(port());
    try {
      expect(await isClosedWithin(socket, 25_000)).toBe(true);
    } finally {
      socket.destroy();
    }
  });

  test.concurrent('stops within 10 s although such a connection is open', async () => {
    const stopped = await startTestApp({ tls: files });
    const socket = await openSilently(Number(new URL(stopped.url).port));
    const isClosing = isClosedWithin(socket, 20_000);
    const closing = stopped.close();
    try {
      expect(await isClosing).toBe(true);
    } finally {
      socket.destroy();
      await closing;
    }
  });

  test('leaves the internal listener on plain HTTP', async () => {
    const { status, headers } = await fetch(`${app.internalUrl}/health`);
    expect(status).toBe(200);
    expect(headers.has('strict-transport-security')).toBe(false); // browsers must ignore it on plain HTTP (RFC 6797, section 8.1)
  });
});

test('an internal listener with a certificate serves a client that trusts it, while the public one stays on plain HTTP', async () => {
  const app = await startTestApp({ internalTls: files });
  try {
    expect(app.internalUrl).toMatch(/^https:/);
    expect((await getTrusting(pair.cert, `${app.internalUrl}/metrics`, API_KEY)).status).toBe(200);
    await expect(getTrusting(other.cert, `${app.internalUrl}/health`, '')).rejects.toThrow();
    expect((await fetch(`${app.url}/health`)).status).toBe(200);
  } finally {
    await app.close();
  }
});

describe('--tls-cert and --tls-key', () => {
  const env = { DENDRO_API_KEY: PROCESS_API_KEY };

  test('dendro serve uses the files of the flags', async () => {
    const flags = ['--data', join(directory, 'data'), '--tls-cert', files.cert, '--tls-key', files.key];
    const server = await startServer(flags, { env });
    try {
      expect(server.url).toMatch(/^https:/);
      expect((await getTrusting(pair.cert, `${server.url}/api/endpoints`, PROCESS_API_KEY)).status).toBe(200);
    } finally {
      expect((await server.stop()).code).toBe(0);
    }
  });

  test('dendro serve with a bad file prints one line without the key, and exits with 1', async () => {
    const flags = ['--data', join(directory, 'data'), '--tls-cert', files.cert];
    const outcome = await runDendro(['serve', ...flags, '--tls-key', file('e.pem', other.key)], { env });
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('e.pem is not the private key of the certificate');
  });

  const BAD_PAIRS: [cert: string | undefined, key: string | undefined, message: RegExp][] = [
    ['none.pem', undefined, /none.pem cannot be read/],
    [undefined, 'none.pem', /none.pem cannot be read/],
    ['.', undefined, /cannot be read/],
    ['text.pem', undefined, /text.pem is not a PEM certificate/],
    ['empty.pem', undefined, /empty.pem is not a PEM certificate/],
    [undefined, 'text.pem', /text.pem is not an unencrypted PEM private key/],
    [undefined, 'empty.pem', /empty.pem is not an unencrypted PEM private key/],
    ['key.pem', 'cert.pem', /key.pem is not a PEM certificate/],
  ];
  test.each(BAD_PAIRS)(
    '%s and %s: the error names the file',
    (cert = 'cert.pem', key = 'key.pem', message) => {
      file('text.pem', 'hello');
      file('empty.pem', '');
      const read = () => readTlsPair({ cert: join(directory, cert), key: join(directory, key) });
      expect(read).toThrow(OperatorError);
      expect(read).toThrow(message);
      expect(read).not.toThrow(/BEGIN/);
    },
  );
});
