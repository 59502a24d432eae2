// Global setup of the browser tests: one server with seven days of demo data, and one browser.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { Random } from '../../../src/demo/random.ts';
import { fillHistory } from '../../../src/demo/traffic.ts';
import { type LogLines, toLogLines } from '../../../src/domain/log-line.ts';
import { openStore } from '../../../src/store/open-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { testStoreOptions } from '../../support/app.ts';
import { createTempDirectory, startServer } from '../../support/process.ts';
import { edgeRecord } from '../../support/record.ts';
import { createTokens } from '../../support/tokens.ts';
import { writeCustomEndpoints } from './custom-endpoints.ts';
import { createSearchRecords } from './search-records.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    url: string;
    internalUrl: string;
    browser: string;
    /** A token with access to the built-in and the custom endpoints, like every token of a server without the explore pack. */
    token: string;
    /** A token with access to all endpoints, those of the explore pack included. */
    exploreToken: string;
    /** A token that can send logs. */
    ingestToken: string;
    /** The end of the demo data, in Unix milliseconds. */
    demoEnd: number;
    /** A token with access to logs.all only. */
    logsToken: string;
    /** A token with access to logs.search and functions.invocation-stats only. */
    searchToken: string;
    /** A token with access to logs.all, and to endpoints that only the view of logs.search uses. */
    partialPackToken: string;
    screenshotDirectory: string;
  }
}

/**
 * Project `tied`: 30 records, 150 with one timestamp, 30 records, from new to old. Project `page`: exactly 100 records with
 * different timestamps. Project `single`: one record.
 */
async function* createTiedRecords(): AsyncGenerator<LogLines> {
  const now = BigInt(Date.now()) * 1000n;
  const create = (project: string, age: number, id: number) =>
    edgeRecord({
      project,
      id: `${project}-${String(id).padStart(3, '0')}`,
      at: now - BigInt(age) * 60_000_000n,
    });
  yield toLogLines('edge', [
    ...Array.from({ length: 30 }, (_, i) => create('tied', 1 + i, i)),
    ...Array.from({ length: 150 }, (_, i) => create('tied', 60, 30 + i)),
    ...Array.from({ length: 30 }, (_, i) => create('tied', 61 + i, 180 + i)),
    ...Array.from({ length: 100 }, (_, i) => create('page', 1 + i, i)),
    create('single', 1, 0),
  ]);
}

const SCREENSHOT_DIRECTORY = join(import.meta.dirname, '..', 'output');

/** The amount of demo data: enough for every chart, and created within 2 s. */
const SCALE = 0.7;

const WITHOUT_PACK = [
  'functions.invocation-stats',
  'usage.api-counts',
  'logs.all',
  'errors.hourly',
  'paths.top',
  'records.paged',
];

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  rmSync(SCREENSHOT_DIRECTORY, { recursive: true, force: true });
  const data = createTempDirectory();
  const store = await openStore(testStoreOptions(data.path));
  const demoEnd = Number(systemClock()) / 1000;
  await fillHistory(store, { endMs: demoEnd, scale: SCALE, random: new Random(11) });
  await store.append(createTiedRecords());
  await store.append(createSearchRecords());
  await store.close();

  const tokens = await createTokens({
    builtIn: { scopes: WITHOUT_PACK.map(name => `query:${name}`) },
    all: { scopes: ['query'] },
    logs: { scopes: ['query:logs.all'] },
    search: { scopes: ['query:logs.search', 'query:functions.invocation-stats'] },
    partialPack: { scopes: ['query:logs.all', 'query:logs.histogram', 'query:projects.active'] },
    ingest: { scopes: ['ingest'] },
  });
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
  project.provide('internalUrl', server.internalUrl);
  project.provide('demoEnd', demoEnd);
  project.provide('token', tokens.secrets.builtIn);
  project.provide('exploreToken', tokens.secrets.all);
  project.provide('ingestToken', tokens.secrets.ingest);
  project.provide('logsToken', tokens.secrets.logs);
  project.provide('searchToken', tokens.secrets.search);
  project.provide('partialPackToken', tokens.secrets.partialPack);
  project.provide('screenshotDirectory', SCREENSHOT_DIRECTORY);
  return async () => {
    await browser.close();
    await server.stop();
    custom.remove();
    tokens.remove();
    data.remove();
  };
}
