// What runs in a thread of body-threads.ts: reads the bodies it is given, one after another. An entry, like main.ts.
import { parentPort } from 'node:worker_threads';
import { DendroError } from '../domain/errors.ts';
import { ownBytes, type WorkerResult } from './body-parser.ts';
import { type BatchBody, parseBody } from './parse-body.ts';

parentPort?.on('message', (body: BatchBody) => {
  const answer = answerTo(body);
  parentPort?.postMessage(answer, 'read' in answer ? [answer.read.lines.buffer as ArrayBuffer] : []);
});

function answerTo(body: BatchBody): WorkerResult {
  try {
    const read = parseBody(body);
    return { read: { ...read, lines: ownBytes(read.lines) } };
  } catch (error) {
    if (error instanceof DendroError) return { fault: { code: error.code, message: error.message } };
    return { defect: error as Error };
  }
}
