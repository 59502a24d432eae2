// What runs in a thread of body-threads.ts: reads the bodies it is given, one after another. An entry, like main.ts.
import { parentPort } from 'node:worker_threads';
import { DendroError } from '../errors.ts';
import { ownBytes, type ThreadAnswer } from './body-threads.ts';
import { type Body, readBody } from './read-body.ts';

parentPort?.on('message', (body: Body) => {
  const answer = answerTo(body);
  parentPort?.postMessage(answer, 'read' in answer ? [answer.read.lines.buffer as ArrayBuffer] : []);
});

function answerTo(body: Body): ThreadAnswer {
  try {
    const read = readBody(body);
    return { read: { ...read, lines: ownBytes(read.lines) } };
  } catch (error) {
    if (error instanceof DendroError) return { fault: { code: error.code, message: error.message } };
    return { defect: error as Error };
  }
}
