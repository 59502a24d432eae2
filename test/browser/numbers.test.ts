import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { askApi, readTable, type Visitor, visit } from './support/visitor.ts';

// Each view shows the numbers that the API gave: read from the page's own table, compared with the API.

let visitor: Visitor;
beforeAll(async () => {
  visitor = await visit({ token: inject('token') });
});
afterAll(() => visitor.leave());

const iso = (micros: unknown) => new Date(Number(micros) / 1000).toISOString().replace('.000Z', '.000000Z');

describe('functions', () => {
  const NUMBERS = [
    'count',
    'error_count',
    'min_execution_time',
    'avg_execution_time',
    'p95_execution_time',
    'p99_execution_time',
    'max_execution_time',
  ];

  test.each([
    ['5min', 'busy-market'],
    ['15min', 'busy-market'],
    ['1hr', 'stormy-harbor'],
    ['1day', 'slow-river'],
    ['7day', 'quiet-garden'],
  ])('%s of %s', async (interval, project) => {
    await visitor.goTo(`?view=functions&project=${project}&interval=${interval}`);
    await visitor.page.getByText('All values as a table').click();
    const table = await readTable(visitor.page, 'Invocations, errors and execution times');
    const { rows } = await askApi('functions.invocation-stats', { project, interval });
    expect(rows.length).toBeGreaterThan(3);
    expect(table).toEqual(
      rows.map(row => [iso(row['timestamp']), ...NUMBERS.map(name => String(row[name]))]),
    );
  });

  test('of one function, with its figures in the legend', async () => {
    const parameters = { project: 'slow-river', interval: '7day', function_id: 'level' };
    const { page } = visitor;
    await visitor.goTo('?view=functions&project=slow-river&interval=7day');
    await page.getByLabel('Function id').fill('level');
    await page.getByLabel('Function id').press('Enter');
    const { rows } = await askApi('functions.invocation-stats', parameters);
    const total = rows.reduce((sum, row) => sum + Number(row['count']), 0);
    await page.getByText(`of ${total.toLocaleString('en-GB')} invocations`).waitFor();
    await page.getByText('All values as a table').click();
    const table = await readTable(page, 'Invocations, errors and execution times');
    expect(table.map(cells => cells[1])).toEqual(rows.map(row => String(row['count'])));
  });
});

describe('API usage', () => {
  const AREAS = ['rest', 'auth', 'storage', 'realtime'].map(area => `total_${area}_requests`);

  test.each(['minutely', 'hourly', 'daily'])('%s', async interval => {
    await visitor.goTo(`?view=usage&project=busy-market&interval=${interval}`);
    await visitor.page.getByText('All values as a table').click();
    const table = await readTable(visitor.page, 'Requests by service area');
    const { rows } = await askApi('usage.api-counts', { project: 'busy-market', interval });
    expect(rows.length).toBeGreaterThan(0);
    expect(table).toEqual(
      rows.map(row => [
        iso(Date.parse(String(row['timestamp'])) * 1000),
        ...AREAS.map(name => String(row[name])),
      ]),
    );
    for (const name of AREAS) {
      const total = rows.reduce((sum, row) => sum + Number(row[name]), 0);
      const entry = visitor.page.locator(`[data-series="${name}"] .legend-value`);
      expect(await entry.textContent()).toBe(total.toLocaleString('en-GB'));
    }
  });
});

describe('logs', () => {
  const readLines = () =>
    visitor.page.locator('.log-line').evaluateAll(lines =>
      lines.map(line => ({
        at: line.querySelector('time')?.getAttribute('datetime'),
        status: line.querySelector('.status')?.textContent,
        message: line.querySelector('.log-message')?.textContent,
      })),
    );

  const toLine = (row: Record<string, unknown>) => ({
    at: new Date(Number(row['timestamp']) / 1000).toISOString().replace('Z', '000Z'),
    status: String((row['metadata'] as { response: { status_code: number } }).response.status_code),
    message: row['event_message'],
  });

  test.each(['FREE', 'PRO'])('the newest records of %s', async tier => {
    const project = 'quiet-garden';
    await visitor.goTo(`?view=logs&project=${project}&tier=${tier}`);
    await visitor.page.locator('.log-line').first().waitFor();
    const { rows } = await askApi('logs.all', { project, project_tier: tier });
    expect(await readLines()).toEqual(rows.map(toLine));
  });

  test('older ones are loaded behind them, none twice and none left out', async () => {
    const project = 'stormy-harbor';
    const { page } = visitor;
    await visitor.goTo(`?view=logs&project=${project}`);
    await page.getByRole('button', { name: 'Load older records' }).click();
    await page.locator('.log-line').nth(150).waitFor();
    const first = await askApi('logs.all', { project, project_tier: 'FREE' });
    const last = Number(first.rows.at(-1)?.['timestamp']);
    const end = new Date(last / 1000).toISOString();
    const second = await askApi('logs.all', { project, project_tier: 'FREE', iso_timestamp_end: end });
    const ids = new Set(first.rows.map(({ id }) => id));
    const expected = [...first.rows, ...second.rows.filter(({ id }) => !ids.has(id))];
    expect(await readLines()).toEqual(expected.map(toLine));
  });

  test('numbers that no double can hold are shown and copied as they were sent', async () => {
    const metadata =
      '{"order":12345678901234567890,"part":0.1,"tiny":1e-400,"nested":{"nanos":1763190896789012345}}';
    const { page } = visitor;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.route('**/api/endpoints/query/**', route =>
      route.fulfill({
        body: `{"result":[{"id":"1","timestamp":1763190896789012,"event_message":"big","metadata":${metadata}}]}`,
        contentType: 'application/json',
      }),
    );
    await visitor.goTo('?view=logs&project=busy-market');
    await page.locator('.log-opener').click();
    expect(await page.locator('.tree-number').allTextContents()).toEqual([
      '12345678901234567890',
      '0.1',
      '1e-400',
      '1763190896789012345',
    ]);
    expect(await page.locator('.details dd').nth(1).textContent()).toBe('2025-11-15T07:14:56.789012Z');
    await page.getByRole('button', { name: 'Copy as JSON' }).click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(copied.replace(/\s/g, '')).toContain(metadata);
    await page.unrouteAll();
  });

  test('a range of one’s own, in the visitor’s time zone', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=logs&project=busy-market&tier=PRO&range=custom');
    const end = new Date(Date.now() - 3_600_000);
    end.setUTCMilliseconds(0);
    const start = new Date(end.getTime() - 120_000);
    const inBerlin = (date: Date) =>
      date.toLocaleString('sv-SE', { timeZone: 'Europe/Berlin' }).replace(' ', 'T');
    await page.getByLabel('After').fill(inBerlin(start));
    await page.getByLabel('Up to').fill(inBerlin(end));
    await page.getByLabel('Up to').press('Enter');
    const bounds = {
      iso_timestamp_start: start.toISOString().replace('.000Z', 'Z'),
      iso_timestamp_end: end.toISOString().replace('.000Z', 'Z'),
    };
    const address = new RegExp(`end=${encodeURIComponent(bounds.iso_timestamp_end)}`);
    await page.waitForURL(address);
    const { rows } = await askApi('logs.all', { project: 'busy-market', project_tier: 'PRO', ...bounds });
    expect(rows.length).toBeGreaterThan(3);
    await expect.poll(readLines).toEqual(rows.map(toLine));
  });
});

describe('any other endpoint of the catalog', () => {
  test('its rows as a table, and a form made from its parameters', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=endpoint.errors.hourly&project=busy-market');
    await page.getByText('Requests and their slowest answer by the hour.').waitFor();
    await page.getByLabel('period').selectOption('week');
    await page.waitForURL(/p\.period=week/);
    const parameters = { project: 'busy-market', period: 'week' };
    const { rows } = await askApi('errors.hourly', parameters);
    expect(rows.length).toBeGreaterThan(100);
    const expected = rows.map(row => [
      iso(Date.parse(String(row['hour'])) * 1000),
      String(row['requests']),
      String(row['rest_share']),
    ]);
    await expect.poll(() => readTable(page, 'Rows of errors.hourly')).toEqual(expected);
    expect(await page.locator('.chart:visible').count()).toBe(2); // shares would lie flat beside counts
  });

  test('without a time column there is no chart, and a cut answer says so', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=endpoint.paths.top&project=busy-market');
    await page.getByText('5 rows, cut at the endpoint’s limit').waitFor();
    const { rows } = await askApi('paths.top', { project: 'busy-market' });
    expect(await readTable(page, 'Rows of paths.top')).toEqual(
      rows.map(row => [String(row['path']), String(row['requests'])]),
    );
    expect(await page.locator('.chart:visible').count()).toBe(0);
  });
});
