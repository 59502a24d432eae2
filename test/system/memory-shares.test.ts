import { describe, expect, test } from 'vitest';
import { MemoryShares } from '../../src/system/memory-shares.ts';

describe('MemoryShares', () => {
  test('one owner gets half of the memory, and another one still gets half of the rest', () => {
    const memory = new MemoryShares(64);
    expect([memory.tryReserve('a', 32), memory.tryReserve('a', 1)]).toEqual([true, false]);
    expect([memory.tryReserve('b', 16), memory.tryReserve('b', 1)]).toEqual([true, false]);
    expect(memory.tryReserve('c', 8)).toBe(true);
    expect(memory.held).toBe(56);
  });

  test('released memory is free for all owners', () => {
    const memory = new MemoryShares(64);
    for (let count = 0; count < 32; count++) memory.tryReserve('a', 1);
    memory.release('a', 32);
    expect(memory.held).toBe(0);
    expect(memory.tryReserve('b', 32)).toBe(true);
  });

  test('an owner that took more than its share has no room, and the others share the rest', () => {
    const memory = new MemoryShares(64);
    memory.reserve('a', 48);
    expect([memory.hasRoom('a'), memory.hasRoom('b')]).toEqual([false, true]);
    expect([memory.tryReserve('b', 9), memory.tryReserve('b', 8)]).toEqual([false, true]);
    expect(memory.hasRoom('b')).toBe(false);
  });
});
