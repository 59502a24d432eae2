import { expect, test } from 'vitest';
import { encodeBlock, findBlock } from '../../src/intake/spool-block.ts';

test('finds a sound block behind a long line that repeats the start of a header', () => {
  const lines = Buffer.from('a line\n');
  const line = Buffer.from(`${' {"form":'.repeat(30_000)}\n`);
  const block = Buffer.concat(encodeBlock({ kind: 'edge', count: 1, lines }, 0));
  const startedAt = performance.now();
  expect(findBlock(Buffer.concat([line, block]), 0)).toBe(line.length);
  expect(performance.now() - startedAt).toBeLessThan(5_000); // an algorithm that takes quadratic time takes far longer
});
