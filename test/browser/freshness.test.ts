// The age of a result, and when the console refreshes it.
import { afterEach, describe, expect, inject, test } from 'vitest';
import { sendRecentInvocations } from './support/send-logs.ts';
import { openTab, pauseClock, queryApi, type Tab, type TabOptions } from './support/tab.ts';

let tab: Tab;
afterEach(() => tab.close());

const open = async (search: string, options: TabOptions = {}) => {
  tab = await openTab({ token: inject('token'), ...options });
  await tab.page.clock.install();
  await tab.goTo(search);
  return tab.page;
};

const queries = () => tab.apiRequests.filter(({ url }) => url.pathname.includes('/query/'));
const waitForChart = () =>
  tab.page
    .getByRole('img', { name: /Invocations|Requests/ })
    .first()
    .waitFor();
const ONE_HOUR = '?view=functions&project=busy-market&range=1hr';

describe('freshness bar', () => {
  test('the bar shows the increasing age of the result and the time of the newest record', async () => {
    const project = 'increasing-age'; // no other test requests it, so its result is not in the cache yet
    await sendRecentInvocations(project);
    const page = await open(`?view=functions&project=${project}&range=1hr`);
    await waitForChart();
    await pauseClock(page);
    const text = page.locator('.freshness-text');
    expect(await text.textContent()).toMatch(/^Updated .+ ago.*data up to \d+ \w+ 20\d\d/);
    const through = await text.locator('time').getAttribute('datetime');
    expect(Date.now() - Date.parse(through ?? '')).toBeLessThan(3_600_000);
    await page.clock.runFor(42_000);
    expect(await text.textContent()).toMatch(/^Updated [4-9]\d s ago/);
  });

  test('a cached result of the 5-minute interval that is 200 s old is refreshed at once', async () => {
    tab = await openTab({ token: inject('token') });
    const { page } = tab;
    const project = 'recent-refresh';
    await sendRecentInvocations(project);
    const { text: body } = await queryApi('functions.invocation-stats', { project, interval: '5min' });
    await page.route(
      '**/api/endpoints/query/**',
      route => route.fulfill({ body, contentType: 'application/json', headers: { Age: '200' } }),
      { times: 1 },
    );
    await tab.goTo(`?view=functions&project=${project}&range=5min`);
    await waitForChart();
    await expect.poll(() => queries().length).toBe(2);
    expect(queries().map(({ headers }) => headers['cache-control'])).toEqual([undefined, 'no-cache']);
    await page.locator('.query-panel:not([aria-busy])').waitFor();
    expect(await page.locator('.freshness-text').textContent()).toMatch(/^Updated (less than 1|\d) s ago/);
  });
});

describe('refresh', () => {
  test('auto-refresh uses the cache, pauses while the tab is hidden, and the switch turns it off', async () => {
    const page = await open(ONE_HOUR);
    await waitForChart();
    await pauseClock(page);
    await page.clock.runFor(61_000);
    await expect.poll(() => queries().length).toBe(2);
    expect(queries().at(-1)?.headers['cache-control']).toBeUndefined();

    await setHidden(true);
    await page.clock.runFor(600_000);
    expect(queries().length).toBe(2);
    await setHidden(false);
    await page.clock.runFor(1000);
    await expect.poll(() => queries().length).toBe(3);

    await page.getByRole('switch', { name: 'Auto-refresh' }).uncheck();
    await page.clock.runFor(600_000);
    expect(queries().length).toBe(3);
  });

  test('the refresh button runs the query without the cache; a failure keeps the result, is shown and retried', async () => {
    const page = await open(ONE_HOUR, { expectedStatuses: [503] });
    await waitForChart();
    const body = JSON.stringify({ error: { code: 'unavailable', message: 'the queue is full' } });
    await page.route('**/api/endpoints/query/**', route =>
      route.fulfill({ status: 503, body, headers: { 'Retry-After': '3' } }),
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('status').getByText('Refresh failed: the queue is full').waitFor();
    expect(queries().at(-1)?.headers['cache-control']).toBe('no-cache');
    expect(await page.locator('.freshness-text').textContent()).toMatch(/^Updated .+ ago.*data up to/);
    await waitForChart();
    await page.unrouteAll();
    await page.clock.runFor(4000);
    await page.getByText('Refresh failed').waitFor({ state: 'detached' });
  });

  test('an expanded log record stays expanded after a refresh', async () => {
    const page = await open('?view=logs&project=quiet-garden&range=all');
    await page.locator('.log-toggle').nth(2).click();
    await page.getByRole('button', { name: 'Copy as JSON' }).waitFor();
    await pauseClock(page);
    await page.clock.runFor(11_000);
    await expect.poll(() => queries().length).toBe(2);
    await page.locator('.query-panel:not([aria-busy])').waitFor();
    expect(await page.locator('.log-toggle').nth(2).getAttribute('aria-expanded')).toBe('true');
  });
});

/** Simulates that the user switches to another tab, or back. */
async function setHidden(hidden: boolean): Promise<void> {
  await tab.page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} });
    document.dispatchEvent(new Event('visibilitychange'));`);
}
