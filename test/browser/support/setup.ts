// What all browser tests share: the real program on seven days of the synthetic platform, and one browser.
import { rmSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { fillHistory } from '../../../src/demo/history.ts';
import { Random } from '../../../src/demo/random.ts';
import { openStore } from '../../../src/store/open-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { testStoreOptions } from '../../support/app.ts';
import { makeFolder, startServer } from '../../support/process.ts';
import { writeTestTokens } from '../../support/tokens.ts';
import { OUTPUT } from './output.ts';
import { writeOwnEndpointFolders } from './own-folders.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    url: string;
    browser: string;
    token: string;
    logsToken: string;
  }
}

/** Enough for pictures, little enough to be made in a second or two. */
const SCALE = 0.7;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  rmSync(OUTPUT, { recursive: true, force: true });
  const data = makeFolder();
  const store = await openStore(testStoreOptions(data.path));
  await fillHistory(store, { nowMs: Number(systemClock()) / 1000, scale: SCALE, random: new Random(11) });
  await store.close();

  const tokens = writeTestTokens({ visitor: ['query'], logs: ['query:logs.all'] });
  const own = writeOwnEndpointFolders();
  const server = await startServer([
    ...['--data', data.path, '--tokens', tokens.file, '--endpoints', own.folder],
  ]);
  const browser = await chromium.launchServer({
    executablePath: process.env['CHROMIUM'] ?? 'chromium',
    // Chromium refuses its sandbox to root, as which CI runs; the pages are our own.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
    timeout: 60_000,
  });
  project.provide('url', server.url);
  project.provide('browser', browser.wsEndpoint());
  project.provide('token', tokens.secrets.visitor);
  project.provide('logsToken', tokens.secrets.logs);
  return async () => {
    await browser.close();
    await server.stop();
    own.remove();
    tokens.remove();
    data.remove();
  };
}
