// Entry point of the worker threads of body-parser-pool.ts: parses one body per message. No module imports it.
import { parentPort } from 'node:worker_threads';
import { DendroError } from '../domain/errors.ts';
import { toTransferable, type WorkerMessage, type WorkerResult } from './body-parser-pool.ts';
import { type EncodedBody, parseBody } from './parse-body.ts';

parentPort?.postMessage('ready' satisfies WorkerMessage);
parentPort?.on('message', (body: EncodedBody) => {
  const result = tryParseBody(body);
  const batches = 'parsed' in result ? result.parsed.batches : [];
  parentPort?.postMessage(
    result,
    batches.map(({ lines }) => lines.buffer as ArrayBuffer),
  );
});

function tryParseBody(body: EncodedBody): WorkerResult {
  try {
    const parsed = parseBody(body);
    const batches = parsed.batches.map(batch => ({ ...batch, lines: toTransferable(batch.lines) }));
    return { parsed: { ...parsed, batches } };
  } catch (error) {
    if (error instanceof DendroError) return { bodyError: { code: error.code, message: error.message } };
    return { unexpectedError: error as Error };
  }
}
