import { expect, test } from 'vitest';
import { type EncodedBody, parseBody } from '../../src/intake/parse-body.ts';

test('a cancelled job stops before the next record', () => {
  const line = `${JSON.stringify({ project: 'p', message: 'm' })}\n`;
  const body: EncodedBody = {
    data: Buffer.from(line.repeat(1000)),
    contentCoding: '',
    format: 'ndjson',
    kind: 'edge',
    context: { nowMicros: 1_794_648_600_123_456, retentionDays: 90 },
    needsDeduplication: true,
  };
  let calls = 0;
  const isCancelled = () => ++calls === 50;
  expect(() => parseBody(body, isCancelled)).toThrow('the client disconnected');
  expect(calls).toBe(50);
});
