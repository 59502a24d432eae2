import { describe, expect, test } from 'vitest';
import { createIdSequence } from '../../src/logs/record-id.ts';

const AT = 1_794_648_600_123_456;
const idsOfBatch = (count: number) => {
  const createId = createIdSequence(AT);
  return Array.from({ length: count }, createId);
};

describe('ids that Dendro creates', () => {
  test('an id is a UUID of version 7 that starts with the Unix milliseconds of the arrival', () => {
    for (const id of idsOfBatch(1000)) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toBe(1_794_648_600_123);
    }
  });

  test('the ids of a batch increase, also beyond 4,096 ids', () => {
    const ids = idsOfBatch(20_000);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('the ids of 1,000 batches of the same microsecond are different', () => {
    const ids = Array.from({ length: 1000 }, () => idsOfBatch(10)).flat();
    expect(new Set(ids).size).toBe(ids.length);
  });
});
