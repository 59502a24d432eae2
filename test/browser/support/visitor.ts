// A visitor of the console: a browser context of its own, in which nothing may go wrong unseen. Errors on the page's
// console, violations of the Content-Security-Policy and requests to other hosts fail the test that looks.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, inject } from 'vitest';
import { type Answer, fetchAnswer } from '../../support/app.ts';
import { OUTPUT } from './output.ts';

export interface Visitor {
  readonly page: Page;
  /** Requests to the API, as they went out. */
  readonly calls: { url: URL; headers: Record<string, string> }[];
  /** What went wrong so far that no test expected. */
  readonly troubles: string[];
  goTo(search: string): Promise<void>;
  screenshot(name: string): Promise<void>;
  leave(): Promise<void>;
}

const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 375, height: 740 };

let connected: Promise<Browser> | undefined;

function connect(): Promise<Browser> {
  connected ??= chromium.connect(inject('browser'));
  return connected;
}

export interface VisitorOptions extends BrowserContextOptions {
  /** Kept in the tab before the page loads; undefined: the visitor has to enter one. */
  readonly token?: string | undefined;
  /** Answers of the API that the page may report as errors on its console, such as 401. */
  readonly expectedStatuses?: readonly number[];
}

export async function visit(options: VisitorOptions = {}): Promise<Visitor> {
  const { token, expectedStatuses = [], ...contextOptions } = options;
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
  const origin = new URL(inject('url')).origin;
  const calls: Visitor['calls'] = [];
  const troubles: string[] = [];
  page.on('request', request => {
    const url = new URL(request.url());
    if (url.origin !== origin) troubles.push(`a request to ${url.origin}`);
    if (url.pathname.startsWith('/api/')) calls.push({ url, headers: request.headers() });
  });
  page.on('pageerror', error => troubles.push(`an error: ${error.message}`));
  page.on('console', message => {
    const isExpected = expectedStatuses.some(status => message.text().includes(`status of ${status}`));
    if (['error', 'warning'].includes(message.type()) && !isExpected) troubles.push(message.text());
  });
  if (token !== undefined)
    await context.addInitScript(
      `sessionStorage.getItem('dendro.token') ?? sessionStorage.setItem('dendro.token', ${JSON.stringify(token)})`,
    );
  return {
    page,
    calls,
    troubles,
    async goTo(search) {
      await page.goto(`${inject('url')}/${search}`);
    },
    async screenshot(name) {
      mkdirSync(OUTPUT, { recursive: true });
      await page.screenshot({ path: join(OUTPUT, `${name}.png`), fullPage: !name.startsWith('logs') });
    },
    async leave() {
      await context.close();
      expect(troubles).toEqual([]);
    },
  };
}

/** What the API answers to the same question. */
export function askApi(name: string, parameters: Record<string, string>): Promise<Answer> {
  return fetchAnswer(`${inject('url')}/api/endpoints/query/${name}?${new URLSearchParams(parameters)}`, {
    headers: { 'X-API-KEY': inject('token') },
  });
}

/** The exact values of a table's cells, row by row: a number or time carries its own beside the words. */
export async function readTable(page: Page, caption: string): Promise<string[][]> {
  const rows = page.getByRole('table', { name: caption }).locator('tbody tr');
  return rows.evaluateAll(lines =>
    lines.map(line =>
      [...line.children].map(cell => {
        const exact = cell.querySelector('data, time');
        return exact?.getAttribute('value') ?? exact?.getAttribute('datetime') ?? cell.textContent ?? '';
      }),
    ),
  );
}
