// Entry point of the worker threads of body-parser-pool.ts: parses one body per message. No module imports it.
import { parentPort, workerData } from 'node:worker_threads';
import { DendroError } from '../domain/errors.ts';
import { toTransferable, type WorkerData, type WorkerResult } from './body-parser-pool.ts';
import { type BatchBody, parseBody } from './parse-body.ts';

const { cancelled } = workerData as WorkerData;
const isCancelled = () => Atomics.load(cancelled, 0) !== 0;

parentPort?.on('message', (body: BatchBody) => {
  const result = tryParseBody(body);
  parentPort?.postMessage(result, 'parsed' in result ? [result.parsed.lines.buffer as ArrayBuffer] : []);
});

function tryParseBody(body: BatchBody): WorkerResult {
  try {
    const parsed = parseBody(body, isCancelled);
    return { parsed: { ...parsed, lines: toTransferable(parsed.lines) } };
  } catch (error) {
    if (error instanceof DendroError) return { bodyError: { code: error.code, message: error.message } };
    return { unexpectedError: error as Error };
  }
}
