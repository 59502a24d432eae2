import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { micros, NOW } from '../support/app.ts';

// Its threads run the built program.
const built = join(import.meta.dirname, '../../dist/intake/body-parser-pool.js');
const { BodyParserPool }: typeof import('../../src/intake/body-parser-pool.ts') = await import(built);

const pool = new BodyParserPool(1);
afterEach(() => pool.close());

test('a body waits while it is paused', async () => {
  const context = { nowMicros: Number(micros(NOW)), retentionDays: 90, projects: undefined };
  const data = Buffer.from(JSON.stringify({ project: 'p', message: 'm' }));
  const body = { kind: 'edge', format: 'json', contentCoding: '', data, context } as const;
  const state = { isPaused: true, isParsed: false };
  const parsed = pool
    .parse({ ...body, needsDeduplication: false }, { isPaused: () => state.isPaused })
    .then(({ batches }) => {
      state.isParsed = true;
      return batches[0]?.accepted;
    });
  await sleep(100);
  expect(state.isParsed).toBe(false);
  state.isPaused = false;
  expect(await parsed).toBe(1);
});
