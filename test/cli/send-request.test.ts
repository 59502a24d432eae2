import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sendRequest } from '../../src/cli/send-request.ts';
import { OperatorError } from '../../src/domain/errors.ts';

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
const send = () => sendRequest({ url: urlOf(redirecting), token: 'secret' }, '/api/endpoints', {}, POLICY);

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

test('a redirect to an invalid URL is an error too', async () => {
  status = 302;
  location = 'http://';
  await expect(send()).rejects.toThrow('redirects to');
});

test('a response with a Location that is no redirect is returned', async () => {
  status = 200;
  location = urlOf(target);
  expect(await send()).toMatchObject({ status: 200, body: Buffer.from('moved') });
});
