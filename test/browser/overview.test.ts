// The start page of a project: requests, errors and latency beside the period before, what got worse, error patterns and log kinds.
// And the story of docs/console.md: the incident of the demo is found with three clicks.
import { afterEach, describe, expect, inject, test } from 'vitest';
import { checkAppearance } from './support/accessibility.ts';
import { HOSTILE, sendHostileRecords } from './support/hostile-records.ts';
import { sendLogs } from './support/send-logs.ts';
import { openTab, queryApi, type Tab } from './support/tab.ts';

let tab: Tab;
afterEach(() => tab.close());

const settings = () => Object.fromEntries(new URL(tab.page.url()).searchParams);
const open = async (search: string) => {
  tab = await openTab({ token: inject('exploreToken') });
  await tab.goTo(search);
  await tab.page.locator('.kind-list li').first().waitFor();
  return tab.page;
};
const subject = (name: string) => tab.page.locator('.overview-columns tbody tr', { hasText: name });
const HARBOR = '?view=overview&project=stormy-harbor&range=1hr';
/** The last hour of the demo data, with the incident in its middle. */
const INCIDENT = `?${new URLSearchParams({
  ...{ view: 'overview', project: 'stormy-harbor', range: 'custom' },
  start: new Date(inject('demoEnd') - 3_600_000).toISOString(),
  end: new Date(inject('demoEnd')).toISOString(),
})}`;

describe('numbers', () => {
  test('every number is that of the API, and a link to its records with the same time range', async () => {
    const page = await open('?view=overview&project=search&range=1day');
    const start = new Date(Date.now() - 86_400_000).toISOString();
    const { rows } = await queryApi('logs.top', {
      project: 'search',
      kind: 'all',
      field: 'kind',
      iso_timestamp_start: start,
    });
    const edge = rows.find(row => row['value'] === 'edge');
    const tiles = await page.locator('.tile-value').allTextContents();
    const errors = rows.reduce((sum, row) => sum + Number(row['error_count']), 0);
    expect(tiles.slice(0, 3)).toEqual([String(edge?.['count']), '40%', String(errors)]);
    const links = await page
      .locator('.overview a')
      .evaluateAll(elements => elements.map(element => element.getAttribute('href') ?? ''));
    for (const link of links) expect(new URLSearchParams(link).get('range')).toBe('1day');
    await page.locator('.tile-value a').nth(1).click();
    await page.waitForURL(/view=logs/);
    expect(settings()).toMatchObject({ kind: 'edge', query: 'status:>=500', range: '1day' });
    await page.locator('.logs-header p').getByText('100 records').waitFor();
  });

  test('the project without a view opens its start page, and another range compares other periods', async () => {
    const page = await open('?project=search');
    expect(settings()).toEqual({ view: 'overview', project: 'search', range: '1hr' });
    await page.locator('.tile-detail').first().getByText('60 before').waitFor();
    await page.getByRole('radio', { name: 'All that is stored' }).check();
    await expect.poll(() => page.locator('.tile-value').first().textContent()).toBe('250');
    await expect.poll(() => page.locator('.tile-detail').first().textContent()).toBe('');
  });

  test('the log kinds are named with the age of their newest record, also those without records in the range', async () => {
    const project = 'two-kinds';
    const send = (kind: string, ageHours: number) => {
      const timestamp = new Date(Date.now() - ageHours * 3_600_000).toISOString();
      return sendLogs(kind, [{ project, timestamp, event_message: 'hello', metadata: { level: 'info' } }]);
    };
    await send('auth', 0);
    await send('realtime', 2.5);
    const countKinds = async () =>
      (await queryApi('logs.top', { project, kind: 'all', field: 'kind' })).rows.length;
    await expect.poll(countKinds).toBe(2);
    const page = await open(`?view=overview&project=${project}`);
    const lines = page.locator('.kind-list li');
    await lines.getByText('Realtime').waitFor();
    expect(await lines.locator('small').allTextContents()).toEqual([
      expect.stringMatching(/ s ago$/),
      '2 h ago',
    ]);
    expect(await lines.locator('a').allTextContents()).toEqual(['1', '0']);
    // Without a row, a chart would have no times for its axis.
    await tab.page.locator('.histogram-message').getByText('0 errors of all log kinds').waitFor();
  });

  test('the execution times of functions are shown', async () => {
    await open('?view=overview&project=slow-river&range=1day');
    await expect
      .poll(() => subject('monthly-report').locator('td').nth(3).textContent())
      .toMatch(/\d (ms|s)$/);
    // It has become slower for 36 hours.
    const detail = await tab.page.locator('.tile', { hasText: 'p95' }).locator('.tile-detail').textContent();
    const [now = 0, before = 0] = [...(detail ?? '').matchAll(/[\d.]+(?=%)/g)].map(Number);
    expect(now).toBeGreaterThan(before);
    await subject('monthly-report').locator('td').nth(3).getByRole('link').click();
    await tab.page.waitForURL(/view=functions/);
    expect(settings()).toMatchObject({ function: 'monthly-report', range: '1day' });
  });
});

test('three clicks lead from the start page to the cause of the incident of the demo', async () => {
  const page = await open(INCIDENT);
  // What is broken: the tile of failed requests is red, and the area with the errors is the first row.
  await page.locator('.tile.worse', { hasText: 'Failed requests' }).waitFor();
  expect(await page.locator('.overview-columns tbody tr').first().textContent()).toMatch(/REST|book-berth/);
  // New error patterns come first, and one of them names the cause.
  await page.locator('.pattern-line', { hasText: 'new' }).first().waitFor();

  await subject('REST').locator('.share a').click(); // 1: the failed requests of the REST API
  await page.waitForURL(/view=logs/);
  await page.locator('.log-row').first().waitFor();
  await page.locator('.search-tabs').getByRole('button', { name: 'What is different?' }).click(); // 2
  await page.locator('.difference').first().waitFor();
  expect((await page.locator('.difference-name').allTextContents()).slice(0, 3).join()).toContain(
    '/rest/v1/orders',
  );
  await page.locator('.difference', { hasText: '/rest/v1/orders' }).first().click(); // 3: the records
  await page.waitForURL(url => !url.searchParams.has('tab'));
  await expect.poll(() => page.locator('.log-row').count()).toBeGreaterThan(5);
  await expect // the list keeps the records of the search before until those of this one are loaded
    .poll(async () => {
      const messages = await page.locator('.log-message').allTextContents();
      return messages.filter(message => !message.includes('/rest/v1/orders'));
    })
    .toEqual([]);
});

test('a click on a bar of the errors opens the errors of its log kind', async () => {
  const page = await open(INCIDENT);
  await page.locator('.histogram [data-series]').first().waitFor();
  const plot = page.locator('.histogram .u-over');
  const { width, height } = (await plot.boundingBox()) ?? { width: 0, height: 0 };
  for (let x = 0.4; x < 0.7 && settings()['view'] === 'overview'; x += 0.02)
    await plot.click({ position: { x: width * x, y: height - 3 } });
  await page.waitForURL(/view=logs/);
  expect(settings()['range']).toBe('custom');
  expect(settings()['query']).toMatch(/status:>=500|level:error/);
});

test('a project without records in the range names what it has', async () => {
  tab = await openTab({ token: inject('exploreToken') });
  await tab.goTo('?view=overview&project=nobody');
  await tab.page.getByRole('heading', { name: 'No records of project nobody in the last hour' }).waitFor();
  await tab.page.getByText('Check the spelling of its reference').waitFor();
});

const TIMEOUT = {
  status: 504,
  body: JSON.stringify({ error: { code: 'query_timeout', message: 'too slow' } }),
};

test('a query that fails hides only its own numbers', async () => {
  tab = await openTab({ token: inject('exploreToken'), expectedStatuses: [504] });
  const { page } = tab;
  await page.route('**/query/logs.patterns?**', route => route.fulfill(TIMEOUT));
  await page.route('**/query/functions.invocation-stats?**', route => route.fulfill(TIMEOUT));
  const isBefore = (url: URL) =>
    url.pathname.endsWith('logs.top') &&
    Date.parse(url.searchParams.get('iso_timestamp_end') ?? '') < Date.now() - 1_800_000;
  const times = page.waitForResponse(/invocation-stats/);
  await tab.goTo(HARBOR);
  await page.getByRole('alert').getByText('too slow').waitFor();
  await (await times).finished();
  expect(await subject('book-berth').locator('td').nth(3).textContent()).toBe('–');
  await page.locator('.tile-detail', { hasText: 'before' }).first().waitFor();

  await page.route(isBefore, route => route.fulfill(TIMEOUT));
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByText('There is no comparison').waitFor();
  expect(await page.locator('.tile-value').first().textContent()).toMatch(/^\d+$/);
  await subject('REST').waitFor();
});

test('the functions that got worse are in the table, also a rare one, one that has stopped and a slower one', async () => {
  const send = (name: string, count: number, ageMinutes: number, status = 200, slowestMs = 10) =>
    sendLogs(
      'function_edge',
      Array.from({ length: count }, (_, i) => ({
        // all in one bucket of a minute
        timestamp: new Date((Math.floor(Date.now() / 60_000) - ageMinutes) * 60_000 + i * 500).toISOString(),
        event_message: 'invocation',
        metadata: {
          project_ref: 'many',
          function_id: name,
          response: { status_code: status },
          execution_time_ms: (slowestMs * (i + 1)) / count,
        },
      })),
    );
  for (let i = 0; i < 9; i++) await send(`busy-${i}`, 9, 5);
  await send('stopped', 6, 80);
  await send('rare', 1, 5, 500);
  await send('slower', 40, 80, 500);
  await send('slower', 40, 5, 200, 1000);
  const count = async () =>
    (await queryApi('logs.top', { project: 'many', kind: 'all', field: 'kind' })).rows[0]?.['count'];
  await expect.poll(count).toBe(168);
  const page = await open('?view=overview&project=many&range=1hr');
  const rows = page.locator('.overview-columns tbody tr');
  await expect.poll(() => rows.count()).toBe(8);
  expect(await rows.nth(0).textContent()).toContain('rare');
  expect(await rows.nth(1).textContent()).toContain('stopped: 6 requests before');
  // Its share of errors fell, but what got worse is shown.
  await expect
    .poll(() => rows.nth(2).textContent())
    .toMatch(/^slower.*slow: [\d.]+% took longer, 0% before$/);
});

test('slow queries of the start page can be cancelled and run again', async () => {
  tab = await openTab({ token: inject('exploreToken') });
  const { page } = tab;
  await page.clock.install();
  let isHeld = true;
  await page.route('**/query/logs.patterns?**', route => (isHeld ? undefined : route.continue()));
  await tab.goTo(HARBOR);
  await page.locator('.kind-list li').first().waitFor();
  await page.clock.runFor(2100);
  await page.getByRole('button', { name: 'Cancel' }).click();
  isHeld = false;
  await page.getByRole('button', { name: 'Run again' }).click();
  await page.locator('.pattern-line').first().waitFor();
  await page.locator('.tile', { hasText: 'p95' }).waitFor(); // is loaded last
  await page.getByRole('heading', { name: 'Cancelled' }).waitFor({ state: 'hidden' });
  isHeld = true;
  await page.clock.runFor(70_000); // an auto-refresh
  expect(await page.getByRole('button', { name: 'Cancel' }).isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Refresh' }).click();
  const isRefresh = ({ headers }: Tab['apiRequests'][number]) => headers['cache-control'] === 'no-cache';
  const listRefreshed = () => tab.apiRequests.slice(tab.apiRequests.findIndex(isRefresh));
  await expect
    .poll(() => listRefreshed().some(({ url }) => url.pathname.endsWith('logs.patterns')))
    .toBe(true);
  expect(listRefreshed().filter(request => !isRefresh(request))).toEqual([]);
});

test('the old content disappears when the project changes, and a reversed range is named', async () => {
  const page = await open(HARBOR);
  await page.route('**/query/logs.top?project=search**', () => {});
  await page.getByLabel('Project').fill('search');
  await page.getByLabel('Project').press('Enter');
  await page.getByText('Loading…').first().waitFor();
  expect(await page.locator('.overview').isVisible()).toBe(false);
  await page.unrouteAll();
  await tab.goTo(
    '?view=overview&project=search&range=custom&start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z',
  );
  await page.getByRole('heading', { name: 'The time range is reversed' }).waitFor();
  await page.getByRole('button', { name: 'Swap start and end' }).click();
  await page.waitForURL(/start=2026-01-01/);
});

test('a period before the retention of the tier is not compared', async () => {
  const page = await open('?view=overview&project=search&range=1day&tier=FREE');
  await page.getByText('There is no comparison').waitFor();
  expect(await page.locator('.tile-detail').first().textContent()).toBe('');
});

test('without the search endpoints, there is no start page', async () => {
  tab = await openTab({ token: inject('token') });
  await tab.goTo('?project=busy-market');
  await tab.page.getByRole('img', { name: /Invocations/ }).waitFor();
  expect(settings()['view']).toBe('functions');
  expect(await tab.page.getByRole('link', { name: 'Overview' }).count()).toBe(0);
});

test('texts of records are shown as text, never as HTML or links', async () => {
  await sendHostileRecords('hostile-start');
  const page = await open('?view=overview&project=hostile-start');
  await subject(HOSTILE).waitFor();
  await page.locator('.pattern-line').first().waitFor();
  expect(await page.locator('img[src="x"], a[href^="javascript"]').count()).toBe(0);
  expect(await page.locator('body').isVisible()).toBe(true);
});

test('the start page fits every width and is accessible in both themes', async () => {
  const page = await open(HARBOR);
  await page.locator('.histogram [data-series]').first().waitFor();
  await expect.poll(() => subject('book-berth').locator('td').nth(3).textContent()).not.toBe('–');
  await checkAppearance(tab, 'overview');
});
