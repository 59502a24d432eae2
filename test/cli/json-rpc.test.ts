import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MAX_BATCH, MAX_RUNNING, serveJsonRpc } from '../../src/cli/mcp/json-rpc.ts';

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
  await serveJsonRpc(
    (async function* () {
      for (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`);
    })(),
    output,
    async () => {
      mostRunning = Math.max(mostRunning, ++running);
      await setImmediate();
      running--;
      return '{}';
    },
  );
  const responses = written.map(line => JSON.parse(line));
  return { responses, mostRunning };
}

const batch = (length: number, firstId = 0) =>
  Array.from({ length }, (_, index) => ({ jsonrpc: '2.0', id: firstId + index, method: 'ping' }));

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
