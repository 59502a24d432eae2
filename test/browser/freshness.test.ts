import { afterEach, describe, expect, inject, test } from 'vitest';
import { askApi, type Visitor, type VisitorOptions, visit } from './support/visitor.ts';

let visitor: Visitor;
afterEach(() => visitor.leave());

const open = async (address: string, options: VisitorOptions = {}) => {
  visitor = await visit({ token: inject('token'), ...options });
  await visitor.page.clock.install();
  await visitor.goTo(address);
  return visitor.page;
};

const queries = () => visitor.calls.filter(({ url }) => url.pathname.includes('/query/'));
const isShown = () =>
  visitor.page
    .getByRole('img', { name: /Invocations|Requests/ })
    .first()
    .waitFor();
const FIVE_MINUTES = '?view=functions&project=busy-market&interval=5min';
const ONE_HOUR = '?view=functions&project=busy-market&interval=1hr';

describe('how old an answer is', () => {
  test('stands above it, with how far the data reach, and grows', async () => {
    const page = await open(ONE_HOUR);
    await isShown();
    const words = page.locator('.freshness-words');
    expect(await words.textContent()).toMatch(/^Answer .+ old.*data through \d+ \w+ 20\d\d/);
    const through = await words.locator('time').getAttribute('datetime');
    expect(Date.now() - Date.parse(through ?? '')).toBeLessThan(3_600_000);
    await page.clock.runFor(42_000);
    expect(await words.textContent()).toMatch(/^Answer [4-9]\d s old/);
  });

  test('a 5-minute view whose answer lies minutes back asks for a fresh one', async () => {
    visitor = await visit({ token: inject('token') });
    const { page } = visitor;
    const { text } = await askApi('functions.invocation-stats', { project: 'busy-market', interval: '5min' });
    await page.route(
      '**/api/endpoints/query/**',
      route => route.fulfill({ body: text, contentType: 'application/json', headers: { Age: '200' } }),
      { times: 1 },
    );
    await visitor.goTo(FIVE_MINUTES);
    await isShown();
    await expect.poll(() => queries().length).toBe(2);
    expect(queries().map(({ headers }) => headers['cache-control'])).toEqual([undefined, 'no-cache']);
    await page.locator('.panel:not([aria-busy])').waitFor();
    expect(await page.locator('.freshness-words').textContent()).toMatch(/^Answer (under 1|\d) s old/);
  });
});

describe('refreshing', () => {
  test('by hand has the query run again', async () => {
    const page = await open(ONE_HOUR);
    await isShown();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await expect.poll(() => queries().length).toBe(2);
    expect(queries().at(-1)?.headers['cache-control']).toBe('no-cache');
  });

  test('by itself goes on as long as the tab is seen', async () => {
    const page = await open(ONE_HOUR);
    await isShown();
    await page.clock.runFor(61_000);
    await expect.poll(() => queries().length).toBe(2);
    expect(queries().at(-1)?.headers['cache-control']).toBeUndefined();

    await setHidden(true);
    await page.clock.runFor(600_000);
    expect(queries().length).toBe(2);
    await setHidden(false);
    await page.clock.runFor(1000);
    await expect.poll(() => queries().length).toBe(3);
  });

  test('by itself can be turned off', async () => {
    const page = await open(ONE_HOUR);
    await isShown();
    await page.getByRole('switch', { name: 'Auto-refresh' }).uncheck();
    await page.clock.runFor(600_000);
    expect(queries().length).toBe(1);
  });

  test('that fails leaves what is there, says so, and is tried again', async () => {
    const page = await open(ONE_HOUR, { expectedStatuses: [503] });
    await isShown();
    const body = JSON.stringify({ error: { code: 'unavailable', message: 'the queue is full' } });
    await page.route(
      '**/api/endpoints/query/**',
      route => route.fulfill({ status: 503, body, headers: { 'Retry-After': '3' } }),
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('status').getByText('Not refreshed: the queue is full').waitFor();
    expect(await page.locator('.freshness-words').textContent()).toMatch(/^Answer .+ old.*data through/);
    await isShown();
    await page.clock.runFor(4000);
    await page.getByText('Not refreshed').waitFor({ state: 'detached' });
  });

  test('keeps a log record open that was open', async () => {
    const page = await open('?view=logs&project=quiet-garden&tier=PRO');
    await page.locator('.log-opener').nth(2).click();
    await page.getByRole('button', { name: 'Copy as JSON' }).waitFor();
    await page.clock.runFor(11_000);
    await expect.poll(() => queries().length).toBe(2);
    await page.locator('.panel:not([aria-busy])').waitFor();
    expect(await page.locator('.log-opener').nth(2).getAttribute('aria-expanded')).toBe('true');
  });
});

/** As a browser does when another tab comes to the front. */
async function setHidden(hidden: boolean): Promise<void> {
  await visitor.page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} });
    document.dispatchEvent(new Event('visibilitychange'));`);
}
