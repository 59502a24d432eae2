// Entry point of the worker threads of body-parser-pool.ts: parses one body per message. No module imports it.
import { parentPort, workerData } from 'node:worker_threads';
import { DendroError } from '../domain/errors.ts';
import {
  toTransferable,
  type WorkerData,
  type WorkerMessage,
  type WorkerResult,
} from './body-parser-pool.ts';
import { type EncodedBody, parseBody } from './parse-body.ts';

const { cancelled } = workerData as WorkerData;
const isCancelled = () => Atomics.load(cancelled, 0) !== 0;

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
    const parsed = parseBody(body, isCancelled);
    const batches = parsed.batches.map(batch => ({ ...batch, lines: toTransferable(batch.lines) }));
    return { parsed: { ...parsed, batches } };
  } catch (error) {
    if (error instanceof DendroError) return { bodyError: { code: error.code, message: error.message } };
    return { unexpectedError: error as Error };
  }
}
