// The search of the logs view: search box, suggestions, log kinds, histogram, and the explanation of an empty result.
import { describe, expect, inject, test } from 'vitest';
import { sendLogs } from './support/send-logs.ts';
import { openTab, queryApi, readTable, useTab } from './support/tab.ts';

const { tab, count, rows, settings, open } = useTab({
  token: inject('exploreToken'),
  expectedStatuses: [400],
});

const SEARCH = '?view=logs&project=search&kind=edge&range=all';
const box = () => tab.page.getByRole('combobox', { name: 'Search' });
const readColumn = (name: string) =>
  tab.page.locator('.log-table').evaluate((table, heading) => {
    const headings = [...table.querySelectorAll('th')].map(({ textContent }) => textContent);
    const index = headings.indexOf(heading);
    return [...table.querySelectorAll('.log-row')].map(row => row.children[index]?.textContent ?? '');
  }, name);

describe('search box', () => {
  test('an expression filters the list, stands in the URL, and is there after a reload', async () => {
    await open(SEARCH);
    await box().fill('status:5xx -path:/auth*');
    await box().press('Enter');
    await tab.page.waitForURL(/query=/);
    expect(settings()).toMatchObject({ kind: 'edge', query: 'status:5xx -path:/auth*', range: 'all' });
    const { rows: expected } = await queryApi('logs.search', {
      project: 'search',
      project_tier: 'PRO',
      query: 'status:5xx -path:/auth*',
    });
    expect(expected.length).toBe(100);
    await expect
      .poll(async () => (await readColumn('Message')).join())
      .toBe(expected.map(row => row['event_message']).join());
    await tab.page.reload();
    await rows().first().waitFor();
    expect(await box().inputValue()).toBe('status:5xx -path:/auth*');
    expect(new Set(await readColumn('Status'))).toEqual(new Set(['500', '503']));
  });

  test('the box suggests the fields of the log kind, then the values of a field with their counts', async () => {
    await open(SEARCH);
    await box().click();
    const options = tab.page.locator('.search-box').getByRole('option');
    await options.first().waitFor();
    expect((await options.allTextContents()).map(text => text.split(':')[0])).toEqual([
      'status',
      'method',
      'path',
      'host',
    ]);
    await box().press('ArrowDown');
    expect(await box().getAttribute('aria-activedescendant')).toBe(await options.first().getAttribute('id'));
    await box().press('Enter');
    await tab.page.getByRole('option', { name: 'status:503 50 records' }).waitFor();
    expect(await options.first().textContent()).toBe('status:5xx100 records');
    await tab.page.keyboard.type('40');
    await expect.poll(() => options.allTextContents()).toEqual(['status:40450 records']);
    await options.first().click();
    await tab.page.waitForURL(/query=status%3A404/);
    await expect.poll(async () => new Set(await readColumn('Status'))).toEqual(new Set(['404']));
    await box().click();
    await box().press('End');
    await tab.page.keyboard.type(' -meth');
    await tab.page.getByRole('option', { name: /^-method:/ }).waitFor();
    await box().press('Escape');
    expect(await options.count()).toBe(0);
    expect(await box().inputValue()).toBe('status:404 -meth');
  });

  test('an invalid expression shows the message of the API at the box and marks the character', async () => {
    const query = 'timeout "connection';
    await open(SEARCH);
    await box().fill(query);
    await box().press('Enter');
    const { error } = await queryApi('logs.search', { project: 'search', query });
    const alert = tab.page.getByRole('alert');
    await alert.getByText(error.message).waitFor();
    expect(error.message).toContain('at character 9');
    expect(await alert.locator('code').textContent()).toBe(query);
    expect(await alert.locator('mark').textContent()).toBe('"');
    expect(await box().getAttribute('aria-invalid')).toBe('true');
    await box().fill('items');
    await box().press('Enter');
    await rows().first().waitFor();
    expect(await alert.isVisible()).toBe(false);
    expect(await box().getAttribute('aria-invalid')).toBeNull();
  });

  test('a field that the log kind does not have is an error at its position', async () => {
    await tab.goTo(`${SEARCH}&query=${encodeURIComponent('items function:hello')}`);
    await tab.page.getByRole('alert').getByText('at character 7').waitFor();
    expect(await tab.page.getByRole('alert').locator('mark').textContent()).toBe('f');
  });
});

test('each log kind has its own columns', async () => {
  await open(SEARCH);
  const { page } = tab;
  const headings = () => page.locator('.log-table th').allTextContents();
  const columns = async () => (await headings()).slice(1, -1);
  expect(await columns()).toEqual(['Status', 'Method', 'Path']);
  await page.getByLabel('Log', { exact: true }).selectOption('Postgres');
  await page.waitForURL(/kind=postgres/);
  await expect.poll(columns).toEqual(['Level', 'User']);
  await expect.poll(() => readColumn('Level')).toEqual(['error', 'log']);
  await page.getByLabel('Log', { exact: true }).selectOption('Function requests');
  await expect.poll(columns).toEqual(['Status', 'Function', 'Duration']);
  await expect.poll(() => readColumn('Function')).toEqual(['hello', 'report']);
  expect(await readColumn('Duration')).toEqual(['120 ms', '120 ms']);
});

describe('histogram', () => {
  const plot = () => tab.page.locator('.histogram .u-over');
  const drag = async (from: number, to: number) => {
    const area = await plot().boundingBox();
    if (area === null) throw new Error('the histogram is not visible');
    const y = area.y + area.height / 2;
    await tab.page.mouse.move(area.x + area.width * from, y);
    await tab.page.mouse.down();
    await tab.page.mouse.move(area.x + area.width * to, y, { steps: 4 });
    await tab.page.mouse.up();
  };
  const readTotal = async () => Number(/of ([\d,]+)/.exec((await count().textContent()) ?? '')?.[1] ?? 0);

  test('the counts are those of the API, and their sum is the total of the list', async () => {
    await open(SEARCH);
    await tab.page.getByText('Counts as a table').click();
    await count().getByText('Newest 100 of 250 records').waitFor();
    const table = await readTable(tab.page, 'Records by time and category');
    expect(table.reduce((sum, cells) => sum + Number(cells[2]), 0)).toBe(250);
    // All records are of the last hours, so the page asks for shorter buckets than those of the whole retention.
    const sent = tab.apiRequests.findLast(({ url }) => url.pathname.endsWith('/logs.histogram'));
    expect(sent?.url.searchParams.get('iso_timestamp_start')).toBeTruthy();
    const parameters = Object.fromEntries(sent?.url.searchParams ?? []);
    const { rows: expected } = await queryApi('logs.histogram', parameters);
    expect(table.map(cells => cells[1])).toEqual(expected.map(row => row['category']));
    expect(await tab.page.locator('[data-series="5xx"] .legend-value').textContent()).toBe('100');
  });

  test('dragging narrows the time range to the selected buckets, and Back returns', async () => {
    await open(`${SEARCH}&range=1day`);
    await count().getByText('Newest 100 of 250 records').waitFor();
    await drag(0.9, 0.97);
    await tab.page.waitForURL(/range=custom/);
    const { start = '', end = '' } = settings();
    expect(Date.parse(end) - Date.parse(start)).toBeLessThan(4 * 3_600_000);
    const bounds = { iso_timestamp_start: start, iso_timestamp_end: end };
    const { rows: buckets } = await queryApi('logs.histogram', {
      project: 'search',
      project_tier: 'PRO',
      ...bounds,
    });
    const total = buckets.reduce((sum, row) => sum + Number(row['count']), 0);
    expect(total).toBeGreaterThan(0);
    expect(total).toBeLessThan(250);
    await tab.page.locator('.histogram h2').getByText(`${total} records`, { exact: true }).waitFor();
    // The zoomed range consists of whole buckets that have ended.
    expect(await tab.page.locator('.chart-hints').getByText('incomplete').isVisible()).toBe(false);
    await tab.page.goBack();
    await tab.page.waitForURL(/range=1day/);
    await expect.poll(readTotal).toBe(250);
  });

  test('the range stays when the user leaves a date field without a change', async () => {
    const { page } = tab;
    // Whole minutes: an input leaves out seconds that are 0.
    const minute = Math.floor(Date.now() / 60_000) * 60_000;
    const toBound = (ago: number) => new Date(minute - ago * 60_000).toISOString();
    const range = new URLSearchParams({ range: 'custom', start: toBound(60), end: toBound(30) });
    await open(`${SEARCH}&${range}`);
    const url = page.url();
    for (const label of ['After', 'Up to']) {
      await page.getByLabel(label, { exact: true }).focus();
      await page.getByLabel('Log', { exact: true }).focus();
    }
    expect(page.url()).toBe(url);
  });

  test('a bucket that the end of the range cuts is partial, not in progress', async () => {
    const { page } = tab;
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    // Buckets of a range of 3 hours are at least 90 s long.
    const [start, end] = [hour - 4 * 3_600_000, hour - 3_600_000 + 7_000].map(ms =>
      new Date(ms).toISOString(),
    );
    const range = new URLSearchParams({ range: 'custom', start: start ?? '', end: end ?? '' });
    await open(`${SEARCH}&${range}`);
    await page.getByRole('img', { name: /Records over time/ }).focus();
    await page.keyboard.press('End');
    await page.locator('.tooltip').getByText('· partial').waitFor();
  });

  /** The last whole hour up to a full minute. A range that ends now would move while the test finds its place in the chart. */
  const fixedHour = () => {
    const end = Math.floor(Date.now() / 60_000) * 60_000;
    const [start, until] = [end - 3_600_000, end].map(ms => new Date(ms).toISOString());
    return { start: start ?? '', end: until ?? '' };
  };
  const clickBar = async ({ start }: { readonly start: string }, at: number) => {
    await tab.page.locator('.histogram [data-series]').first().waitFor();
    const area = await plot().boundingBox();
    if (area === null) throw new Error('the histogram is not visible');
    const x = (area.width * (at - Date.parse(start))) / 3_600_000;
    await plot().click({ position: { x, y: area.height - 3 } });
  };

  test('a click on a bar shows its records, and Enter all records of the bucket', async () => {
    const hour = fixedHour();
    await open(`${SEARCH}&${new URLSearchParams({ range: 'custom', ...hour })}`);
    // One request per minute; the first bucket of the hour is incomplete.
    const { rows: buckets } = await queryApi('logs.histogram', {
      ...{ project: 'search', project_tier: 'PRO', query: 'status:5xx' },
      ...{ iso_timestamp_start: hour.start, iso_timestamp_end: hour.end },
    });
    await clickBar(hour, Number(buckets[10]?.['timestamp']) / 1000 + 15_000); // the middle of a bucket of at least 30 s
    await expect.poll(() => settings()['query']).toBe('status:5xx');
    const { start = '', end = '' } = settings();
    const bucketMs = Date.parse(end) - Date.parse(start);
    expect(bucketMs).toBeGreaterThanOrEqual(30_000); // an hour has at most 120 buckets
    expect(bucketMs).toBeLessThanOrEqual(120_000);
    await expect.poll(async () => (await readColumn('Status')).every(status => /^5/.test(status))).toBe(true);
    await tab.page.goBack();
    await expect.poll(settings).toMatchObject(hour);
    await tab.page.reload(); // the chart of the narrowed range is gone
    await tab.page.locator('.histogram [data-series]').first().waitFor();
    await tab.page.getByRole('img', { name: /Records over time/ }).focus();
    await tab.page.keyboard.press('End');
    await tab.page.keyboard.press('Enter');
    await expect.poll(() => settings()['start']).not.toBe(hour.start);
    expect(settings()['query']).toBeUndefined();
  });

  test('a click on a bar of records without a status shows these records', async () => {
    const { page } = tab;
    const project = 'no-status';
    const timestamp = new Date(Date.now() - 1_200_000).toISOString();
    await sendLogs('edge', [
      { project, timestamp, event_message: 'hello', metadata: {} },
      { project, event_message: 'fine', metadata: { response: { status_code: 200 } } },
    ]);
    await expect.poll(async () => (await queryApi('logs.search', { project })).rows.length).toBe(2);
    const hour = fixedHour();
    await open(
      `?view=logs&project=${project}&kind=edge&${new URLSearchParams({ range: 'custom', ...hour })}`,
    );
    // The middle of 30 s: a bucket, or half of one.
    await clickBar(hour, Math.floor(Date.parse(timestamp) / 30_000) * 30_000 + 15_000);
    await expect.poll(() => settings()['query']).toBe('-exists:status');
    await expect.poll(() => page.locator('.log-message').allTextContents()).toEqual(['hello']);
  });
});

describe('empty result', () => {
  test('the page says how many records do not match the expression, which can be removed', async () => {
    await tab.goTo(`${SEARCH}&query=no-record-contains-this`);
    const { page } = tab;
    await page.getByRole('heading', { name: 'No matches in this time range' }).waitFor();
    await page.getByText('250 records of this time range do not match').waitFor();
    await page.getByRole('button', { name: 'Remove the search expression' }).click();
    await rows().first().waitFor();
    expect(settings()['query']).toBeUndefined();
  });

  test('a token without the histogram learns that the expression is the reason', async () => {
    await tab.page.route('**/api/endpoints', async route => {
      const response = await route.fetch();
      const { result } = (await response.json()) as { result: { name: string }[] };
      const json = { result: result.filter(({ name }) => name !== 'logs.histogram') };
      await route.fulfill({ response, json });
    });
    await tab.goTo(`${SEARCH}&query=no-record-contains-this`);
    await tab.page.getByText('This time range has records, but none of them matches').waitFor();
    await tab.page.getByRole('button', { name: 'Remove the search expression' }).click();
    await rows().first().waitFor();
  });

  test('the page says when the newest record is if it is outside the time range', async () => {
    const days = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString();
    const range = new URLSearchParams({ range: 'custom', start: days(5), end: days(4) });
    await tab.goTo(`${SEARCH}&${range}`);
    await tab.page.getByText(/The newest record of this project and log kind is from/).waitFor();
    await tab.page.getByRole('button', { name: 'Show all records' }).click();
    await rows().first().waitFor();
  });

  test('the page says that a project without records may be misspelt', async () => {
    await tab.goTo('?view=logs&project=nobody&range=all');
    await tab.page.getByText('Check the spelling of its reference').waitFor();
  });

  test('a reversed time range is explained, and its times can be swapped', async () => {
    const hours = (ago: number) => new Date(Date.now() - ago * 3_600_000).toISOString();
    const range = new URLSearchParams({ range: 'custom', start: hours(1), end: hours(3) });
    await tab.goTo(`${SEARCH}&${range}`);
    await tab.page.getByRole('heading', { name: 'The time range is reversed' }).waitFor();
    await tab.page.getByRole('button', { name: /Swap/ }).click();
    await rows().first().waitFor();
  });

  test('a search that the time limit ended can be continued', async () => {
    const { page } = tab;
    const body = '{"result":[]}';
    const headers = { 'Dendro-Clipped': 'time-limit', 'Dendro-Next-Cursor': 'next' };
    await page.route('**/logs.search?**', route => route.fulfill({ body, headers }), { times: 1 });
    await page.clock.install();
    await tab.goTo(`${SEARCH}&range=1day&query=rare`);
    await page.getByRole('heading', { name: 'No matches so far' }).waitFor();
    const searches = () => tab.apiRequests.filter(({ url }) => url.pathname.endsWith('/logs.search'));
    const [first] = searches();
    const count = searches().length;
    await page.route('**/logs.search?**', route => route.fulfill({ body }));
    // The live tail finds nothing new. That says nothing about older records.
    await expect
      .poll(async () => {
        await page.clock.runFor(3500);
        return searches().length;
      })
      .toBeGreaterThan(count + 1);
    await page.getByRole('button', { name: 'Continue with older records' }).click();
    await page.getByRole('heading', { name: 'No matches in the last day' }).waitFor();
    const next = tab.apiRequests.find(({ url }) => url.searchParams.get('cursor') === 'next');
    // A cursor is valid only with the same other parameters.
    for (const name of ['query', 'iso_timestamp_start', 'kind'])
      expect(next?.url.searchParams.get(name)).toBe(first?.url.searchParams.get(name));
  });
});

test('without the explore pack, the logs view says what the search needs', async () => {
  const other = await openTab({ token: inject('token') });
  await other.goTo('?view=logs&project=search&range=all');
  await other.page.locator('.log-row').first().waitFor();
  await other.page.getByText('the operator has turned the search off with --packs none').waitFor();
  await other.close();
});
