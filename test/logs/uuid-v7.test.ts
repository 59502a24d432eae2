import { describe, expect, test } from 'vitest';
import { makeUuidV7 } from '../../src/logs/uuid-v7.ts';

describe('ids that are made at the door', () => {
  test('an id is a UUID of version 7 that begins with the milliseconds of its time', () => {
    const id = makeUuidV7(1_794_648_600_123_456);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toBe(1_794_648_600_123);
  });

  test('ids of one microsecond differ', () => {
    const ids = Array.from({ length: 10_000 }, () => makeUuidV7(1_794_648_600_123_456));
    expect(new Set(ids).size).toBe(ids.length);
  });
});
