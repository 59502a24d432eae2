import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MAX_BATCH, type RpcRequest, serveJsonRpc } from '../../src/cli/mcp/json-rpc.ts';
import { MAX_RUNNING, MAX_WAITING } from '../../src/cli/mcp/request-queue.ts';

async function* toInput(lines: Iterable<unknown>): AsyncGenerator<Buffer> {
  for (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`);
}

/** Serves the lines. Returns the responses and how many requests ran at the same time at most. */
async function serve(lines: readonly unknown[]): Promise<{ responses: unknown[]; mostRunning: number }> {
  const written: string[] = [];
  const output = new Writable({
    write(chunk, _, done) {
      written.push(String(chunk));
      done();
    },
  });
  let running = 0;
  let mostRunning = 0;
  await serveJsonRpc(toInput(lines), output, async () => {
    mostRunning = Math.max(mostRunning, ++running);
    await setImmediate();
    running--;
    return '{}';
  });
  const responses = written.map(line => JSON.parse(line));
  return { responses, mostRunning };
}

const batch = (length: number, firstId = 0) =>
  Array.from({ length }, (_, index) => ({ jsonrpc: '2.0', id: firstId + index, method: 'call' }));

test('the requests of many batches share the limit of running requests', async () => {
  const batches = Array.from({ length: 40 }, (_, index) => batch(MAX_BATCH, index * 100));
  const { responses, mostRunning } = await serve(batches);
  expect(responses.flat()).toHaveLength(40 * MAX_BATCH);
  expect(mostRunning).toBeLessThanOrEqual(MAX_RUNNING);
});

test('a batch above the limit is refused as a whole', async () => {
  const { responses, mostRunning } = await serve([batch(MAX_BATCH + 1)]);
  expect(responses).toEqual([
    {
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: 'the batch has 33 messages; the limit is 32' },
    },
  ]);
  expect(mostRunning).toBe(0);
});

/** A handler whose calls last until the client cancels them. Answers a ping at once. */
function createHangingHandler() {
  const started: unknown[] = [];
  const handle = async ({ method, params, signal }: RpcRequest) => {
    if (method === 'ping') return '{}';
    started.push(params['n']);
    await once(signal, 'abort');
    return '{}';
  };
  return { started, handle };
}

const calls = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ jsonrpc: '2.0', id: n, method: 'call', params: { n } }));
const cancel = (requestId: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});

test('a ping and cancellations are handled while the most requests run', async () => {
  const { started, handle } = createHangingHandler();
  const output = new PassThrough();
  const lines = [
    ...calls(MAX_RUNNING + 3),
    { jsonrpc: '2.0', id: 'ping', method: 'ping' },
    cancel(MAX_RUNNING + 1), // waits
    cancel(0),
    ...Array.from({ length: MAX_RUNNING + 2 }, (_, n) => cancel(n + 1)),
  ];
  await serveJsonRpc(
    (async function* () {
      for await (const line of toInput(lines)) {
        yield line;
        await setImmediate(); // a request that waited starts
      }
    })(),
    output,
    handle,
  );
  expect(started).toEqual([...Array(MAX_RUNNING + 1).keys(), MAX_RUNNING + 2]);
  expect(JSON.parse(String(output.read()))).toEqual({ jsonrpc: '2.0', id: 'ping', result: {} });
}, 10_000);

test('a request beyond the limit of waiting requests is refused', async () => {
  const { started, handle } = createHangingHandler();
  const output = new PassThrough();
  const count = MAX_RUNNING + MAX_WAITING + 1;
  await serveJsonRpc(
    toInput([...calls(count), ...Array.from({ length: count }, (_, n) => cancel(count - 1 - n))]),
    output,
    handle,
  );
  expect(started).toEqual([...Array(MAX_RUNNING).keys()]);
  expect(JSON.parse(String(output.read()))).toEqual({
    jsonrpc: '2.0',
    id: count - 1,
    error: {
      code: -32000,
      message: '32 requests are running and 256 are waiting; send the request again after a response',
    },
  });
}, 10_000);

test('requests wait while the client does not read the responses', async () => {
  let started = 0;
  const output = new PassThrough({ highWaterMark: 1 });
  const served = serveJsonRpc(toInput(calls(200)), output, async () => {
    started++;
    await setImmediate();
    return '{}';
  });
  for (let i = 0; i < 100; i++) await setImmediate();
  expect(started).toBeLessThanOrEqual(2 * MAX_RUNNING);
  let responses = '';
  output.on('data', chunk => {
    responses += chunk;
  });
  await served;
  expect(responses.trim().split('\n')).toHaveLength(200);
});
