// The address of the client that sent a request. If the request comes from a trusted proxy, the address is in X-Forwarded-For. From
// any other sender the header is ignored, because it could contain any address.
import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP } from 'node:net';

/** Returns a function that finds the address of a request's client: the last address in the chain that is not a trusted proxy. */
export function clientAddressReader(trustedProxies: BlockList): (request: IncomingMessage) => string {
  const isTrusted = (address: string) => trustedProxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const trustsNone = trustedProxies.rules.length === 0;
  return ({ socket, headers }) => {
    let client = normalize(socket.remoteAddress ?? '');
    if (trustsNone) return client;
    // Each proxy appends the address that it got the request from. Everything left of an untrusted address is unverified.
    const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',').reverse();
    for (const text of forwarded) {
      const previous = normalize(text);
      if (previous === '' || client === '' || !isTrusted(client)) break;
      client = previous;
    }
    return client;
  };
}

/** Removes the port, and the prefix `::ffff:` of an IPv4 address on an IPv6 socket. Empty if the text is not an IP address. */
function normalize(text: string): string {
  const [, bracketed, withPort] =
    /^\[([^\]]+)\](?::\d+)?$|^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text.trim()) ?? [];
  const address = (bracketed ?? withPort ?? text).trim().replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(address) === 0 ? '' : address;
}
