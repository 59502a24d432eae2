import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeUnreachable, findServer, sendRequest } from '../../src/cli/target.ts';
import { readInvocation } from '../../src/config.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import { findFreePort } from '../support/process.ts';

const POLICY = { maxAttempts: 3, retryUnreachable: true };

let received: IncomingMessage[];
let target: Server;
let redirecting: Server;
let location: string;
let status: number;

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const listen = async (server: Server) => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
};
const send = async () => {
  const args = ['--url', urlOf(redirecting), '--token', 'secret'];
  const server = findServer(readInvocation(args, {}, ['url', 'token']));
  return server && sendRequest(server, '/api/endpoints', {}, POLICY);
};

beforeEach(async () => {
  received = [];
  target = await listen(
    createServer((request, response) => {
      received.push(request);
      response.end('{}');
    }),
  );
  redirecting = await listen(
    createServer((_, response) => response.writeHead(status, { Location: location }).end('moved')),
  );
});
afterEach(() => {
  target.close();
  redirecting.close();
});

test.each([301, 302, 303, 307, 308])('status %i does not send the token to another server', async code => {
  status = code;
  location = `${urlOf(target)}/login?next=1`;
  const error = await send().catch((reason: unknown) => reason);
  expect(received).toEqual([]);
  expect(error).toBeInstanceOf(OperatorError);
  expect(String(error)).toContain(`${urlOf(redirecting)} redirects to ${urlOf(target)}/login, but a token`);
});

test('a response with a Location that is no redirect is returned', async () => {
  status = 200;
  location = urlOf(target);
  expect(await send()).toMatchObject({ status: 200, body: Buffer.from('moved') });
});

test('the reason is given for a host name with several addresses that all refuse the connection', async () => {
  // The error that fetch() gets from such a host: its message is empty.
  const addresses = ['127.0.0.1', '127.0.0.2'].map(address => ({ address, family: 4 }));
  const socket = connect({
    port: await findFreePort(),
    host: 'several.test',
    autoSelectFamily: true,
    lookup: (_host, _options, callback) => callback(null, addresses),
  });
  const [cause] = await once(socket, 'error');
  expect(cause).toMatchObject({ name: 'AggregateError', message: '' });
  expect(describeUnreachable('http://several.test:4000', new TypeError('fetch failed', { cause }))).toBe(
    'cannot reach http://several.test:4000: ECONNREFUSED',
  );
});
