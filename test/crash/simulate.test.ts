import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import { CheckerPool } from './checker-pool.ts';
import type { Mutation } from './crash-points.ts';
import { type SimulationResult, simulate } from './simulate.ts';

// npm run test:crash runs the simulator for minutes. These tests show that it can fail.

const OPTIONS = { seed: 5, seconds: 0, states: 80, steps: 4 };

let pool: CheckerPool;
beforeAll(async () => {
  pool = await CheckerPool.start(2);
}, 120_000);
afterAll(() => pool.close());

async function run({ skip }: TestContext, mutation?: Mutation): Promise<SimulationResult> {
  const result = await simulate({ ...OPTIONS, ...(mutation && { mutation }) }, pool);
  return result ?? skip('THE CRASH SIMULATOR IS NOT TESTED HERE: it needs Linux and a C compiler');
}

test('every crash state of a short workload keeps the acknowledged records', {
  timeout: 600_000,
}, async context => {
  const { states, violations } = await run(context);
  expect(violations).toEqual([]);
  expect(states).toBe(OPTIONS.states);
});

test.for(['no syncs of the spool', 'no syncs of parts', 'no syncs of directories'] as const)(
  'the simulator reports lost records if the program makes %s',
  { timeout: 600_000 },
  async (mutation, context) => {
    const { lost, violations } = await run(context, mutation);
    expect(lost).toBeGreaterThan(0);
    expect(violations[0]).toContain('npm run test:crash -- --replay');
  },
);
