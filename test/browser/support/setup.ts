// Global setup of the browser tests: one server with seven days of demo data, and one browser.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { fillHistory } from '../../../src/demo/history.ts';
import { Random } from '../../../src/demo/random.ts';
import { openStore } from '../../../src/store/open-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { testStoreOptions } from '../../support/app.ts';
import { createTempDirectory, startServer } from '../../support/process.ts';
import { createTokens } from '../../support/tokens.ts';
import { writeCustomEndpoints } from './custom-endpoints.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    url: string;
    browser: string;
    /** A token with access to all endpoints. */
    token: string;
    /** A token with access to logs.all only. */
    logsToken: string;
    screenshotDirectory: string;
  }
}

const SCREENSHOT_DIRECTORY = join(import.meta.dirname, '..', 'output');

/** The amount of demo data: enough for every chart, and created within 2 s. */
const SCALE = 0.7;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  rmSync(SCREENSHOT_DIRECTORY, { recursive: true, force: true });
  const data = createTempDirectory();
  const store = await openStore(testStoreOptions(data.path));
  await fillHistory(store, { endMs: Number(systemClock()) / 1000, scale: SCALE, random: new Random(11) });
  await store.close();

  const tokens = await createTokens({ all: { scopes: ['query'] }, logs: { scopes: ['query:logs.all'] } });
  const custom = writeCustomEndpoints();
  const server = await startServer([
    ...['--data', data.path, '--tokens', tokens.file, '--endpoints', custom.folder],
  ]);
  const browser = await chromium.launchServer({
    executablePath: process.env['CHROMIUM'] ?? 'chromium',
    // Chromium cannot start its sandbox as root, the user in CI. The pages are trusted.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
    timeout: 60_000,
  });
  project.provide('url', server.url);
  project.provide('browser', browser.wsEndpoint());
  project.provide('token', tokens.secrets.all);
  project.provide('logsToken', tokens.secrets.logs);
  project.provide('screenshotDirectory', SCREENSHOT_DIRECTORY);
  return async () => {
    await browser.close();
    await server.stop();
    custom.remove();
    tokens.remove();
    data.remove();
  };
}
