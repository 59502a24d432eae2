// A browser tab with the console, in a browser context of its own. `close` fails the test if the page logged an error or
// warning, violated its Content-Security-Policy or sent a request to another host.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterEach, beforeEach, expect, inject } from 'vitest';
import { fetchResponse, type TestResponse } from '../../support/app.ts';

export interface Tab {
  readonly page: Page;
  /** Requests that the page sent to the API. */
  readonly apiRequests: { url: URL; headers: Record<string, string> }[];
  /** Errors so far, except those that the test expects. */
  readonly unexpectedErrors: string[];
  goTo(search: string): Promise<void>;
  screenshot(name: string): Promise<void>;
  close(): Promise<void>;
}

export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 375, height: 740 };

let connection: Promise<Browser> | undefined;

function connect(): Promise<Browser> {
  connection ??= chromium.connect(inject('browser'));
  return connection;
}

export interface TabOptions extends BrowserContextOptions {
  /** Saved in the tab before the page loads; undefined: the user has to sign in. */
  readonly token?: string | undefined;
  /** The URL of the server; default: the server with the demo data. */
  readonly url?: string;
  /** Status codes of API responses that the browser may log as errors, such as 401. */
  readonly expectedStatuses?: readonly number[];
}

export async function openTab(options: TabOptions = {}): Promise<Tab> {
  const { token, url: serverUrl = inject('url'), expectedStatuses = [], ...contextOptions } = options;
  const browser = await connect();
  const context = await browser.newContext({
    viewport: DESKTOP,
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    colorScheme: 'light',
    reducedMotion: 'reduce',
    ...contextOptions,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const origin = new URL(serverUrl).origin;
  const apiRequests: Tab['apiRequests'] = [];
  const unexpectedErrors: string[] = [];
  page.on('request', request => {
    const url = new URL(request.url());
    if (url.origin !== origin) unexpectedErrors.push(`request to another host: ${url.origin}`);
    if (url.pathname.startsWith('/api/')) apiRequests.push({ url, headers: request.headers() });
  });
  page.on('pageerror', error => unexpectedErrors.push(`uncaught error: ${error.message}`));
  page.on('console', message => {
    const isExpected = expectedStatuses.some(status => message.text().includes(`status of ${status}`));
    if (['error', 'warning'].includes(message.type()) && !isExpected) unexpectedErrors.push(message.text());
  });
  if (token !== undefined)
    await context.addInitScript(
      `sessionStorage.getItem('dendro.token') ?? sessionStorage.setItem('dendro.token', ${JSON.stringify(token)})`,
    );
  return {
    page,
    apiRequests,
    unexpectedErrors,
    async goTo(search) {
      await page.goto(`${serverUrl}/${search}`);
    },
    async screenshot(name) {
      const directory = inject('screenshotDirectory');
      mkdirSync(directory, { recursive: true });
      await page.screenshot({ path: join(directory, `${name}.png`), fullPage: !name.startsWith('logs') });
    },
    async close() {
      await context.close();
      expect(unexpectedErrors).toEqual([]);
    },
  };
}

/** A tab for each test of the file, and what most tests of the logs view do in it. */
export function useTab(options: TabOptions) {
  let current: Tab | undefined;
  beforeEach(async () => {
    current = await openTab(options);
  });
  afterEach(() => current?.close());
  const tab = new Proxy({} as Tab, { get: (_, name) => Reflect.get(current ?? {}, name) });
  const rows = () => tab.page.locator('.log-row');
  return {
    tab,
    /** The parameters of the URL. */
    settings: () => Object.fromEntries(new URL(tab.page.url()).searchParams),
    rows,
    /** The line that says how many records there are. */
    count: () => tab.page.locator('.logs-header p'),
    button: (name: string) => tab.page.getByRole('button', { name, exact: true }),
    /** Opens the logs view, and waits for the first record. */
    async open(search: string) {
      await tab.goTo(search);
      await rows().first().waitFor();
    },
  };
}

/** Stops the time of a page whose clock is installed: from now on, it passes only with `page.clock.runFor`. */
export async function pauseClock(page: Page): Promise<void> {
  const pause = async () => page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 100);
  await pause().catch(pause); // the first attempt stops the clock, even if it comes after the 100 ms
}

/** Sends a query to the API directly, to compare its response with the page. */
export function queryApi(name: string, parameters: Record<string, string>): Promise<TestResponse> {
  return fetchResponse(`${inject('url')}/api/endpoints/query/${name}?${new URLSearchParams(parameters)}`, {
    headers: { 'X-API-KEY': inject('exploreToken') },
  });
}

export function sumColumn(rows: TestResponse['rows'], column: string): number {
  return rows.reduce((sum, row) => sum + Number(row[column]), 0);
}

/** The cells of a table, row by row: the exact value of a number or time, the text of any other cell. Waits for the first row. */
export async function readTable(page: Page, caption: string): Promise<string[][]> {
  const rows = page.getByRole('table', { name: caption }).locator('tbody tr');
  await rows.first().waitFor();
  return rows.evaluateAll(elements =>
    elements.map(element =>
      [...element.children].map(cell => {
        const exact = cell.querySelector('data, time');
        return exact?.getAttribute('value') ?? exact?.getAttribute('datetime') ?? cell.textContent ?? '';
      }),
    ),
  );
}
