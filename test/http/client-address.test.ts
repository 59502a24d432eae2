import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { clientAddressReader } from '../../src/http/client-address.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';

function trust(...ranges: [string, number, 'ipv4' | 'ipv6'][]): BlockList {
  const list = new BlockList();
  for (const [address, prefix, family] of ranges) list.addSubnet(address, prefix, family);
  return list;
}

const PROXIES = trust(['10.0.0.0', 8, 'ipv4'], ['fd00::', 8, 'ipv6']);
const addressOf = (remoteAddress: string | undefined, forwardedFor?: string, trusted = PROXIES) =>
  clientAddressReader(trusted)({
    socket: { remoteAddress },
    headers: { 'x-forwarded-for': forwardedFor },
  } as unknown as IncomingMessage);

describe('the address of the client', () => {
  test.each([
    ['of the connection, without a trusted proxy', '10.0.0.1', '192.0.2.7', '10.0.0.1', new BlockList()],
    ['of the connection, if it is no trusted proxy', '198.51.100.1', '192.0.2.7', '198.51.100.1', PROXIES],
    ['in X-Forwarded-For of a trusted proxy', '10.0.0.1', '192.0.2.7', '192.0.2.7', PROXIES],
    ['the rightmost untrusted one', '10.0.0.1', '1.1.1.1, 192.0.2.7, 10.0.0.2', '192.0.2.7', PROXIES],
    ['of the proxy, without the header', '10.0.0.1', undefined, '10.0.0.1', PROXIES],
    ['the leftmost one, if all are trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3', PROXIES],
    [
      'of the last proxy before text that is no address',
      '10.0.0.1',
      '1.1.1.1, x, 10.0.0.2',
      '10.0.0.2',
      PROXIES,
    ],
    ['an IPv4 address of an IPv6 socket', '::ffff:10.0.0.1', '::ffff:192.0.2.7', '192.0.2.7', PROXIES],
    ['an IPv6 address', 'fd00::1', '2001:db8::7', '2001:db8::7', PROXIES],
    ['an address without its port', '10.0.0.1', '192.0.2.7:5123', '192.0.2.7', PROXIES],
    ['an IPv6 address without its port', '10.0.0.1', '[2001:db8::7]:5123', '2001:db8::7', PROXIES],
  ])('is %s', (_, connection, forwardedFor, client, trusted) => {
    expect(addressOf(connection, forwardedFor, trusted)).toBe(client);
  });
});

describe('wrong tokens of clients behind a proxy', () => {
  let app: TestApp;
  afterEach(() => app.close());

  const sendWrongToken = (client: string) =>
    app.get('/api/endpoints', { headers: { 'X-API-KEY': 'a-wrong-token', 'X-Forwarded-For': client } });
  const clients = Array.from({ length: 11 }, (_, n) => `192.0.2.${n}`);

  test('are throttled by client address if the proxy is trusted', async () => {
    app = await startTestApp({ trustedProxies: trust(['127.0.0.1', 32, 'ipv4']) }, new ManualTimer());
    for (const client of clients) expect((await sendWrongToken(client)).status).toBe(401);
  });

  test('are throttled together if no proxy is trusted, whatever X-Forwarded-For contains', async () => {
    app = await startTestApp({}, new ManualTimer());
    for (const client of clients.slice(1)) expect((await sendWrongToken(client)).status).toBe(401);
    let hasResponse = false;
    const delayed = sendWrongToken('192.0.2.0').then(({ status }) => {
      hasResponse = true;
      return status;
    });
    for (let i = 0; i < 5; i++) await app.get('/health'); // time for the response that must wait
    expect(hasResponse).toBe(false);
    await app.pass(10_000);
    expect(await delayed).toBe(401);
  });
});
