// Compares the values on the page with those of the API. Each chart has a table of its values, which the tests read.
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { sendRecentInvocations } from './support/send-logs.ts';
import { openTab, queryApi, readTable, type Tab } from './support/tab.ts';

let tab: Tab;
beforeAll(async () => {
  tab = await openTab({ token: inject('token'), expectedStatuses: [400] }); // an interval that only the page's catalog has
});
afterAll(() => tab.close());

const iso = (micros: unknown) => new Date(Number(micros) / 1000).toISOString().replace('.000Z', '.000000Z');

describe('functions view', () => {
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
    ['5min', 'recent-5min'],
    ['15min', 'recent-15min'],
    ['1hr', 'stormy-harbor'],
    ['1day', 'slow-river'],
    ['7day', 'quiet-garden'],
  ])('interval %s of project %s: the table has the values of the API', async (interval, project) => {
    if (project.startsWith('recent-')) await sendRecentInvocations(project);
    await tab.goTo(`?view=functions&project=${project}&range=${interval}`);
    await tab.page.getByText('All values as a table').click();
    const table = await readTable(tab.page, 'Invocations, errors and execution times');
    const { rows } = await queryApi('functions.invocation-stats', { project, interval });
    expect(rows.length).toBeGreaterThan(3);
    expect(table).toEqual(
      rows.map(row => [iso(row['timestamp']), ...NUMBERS.map(name => String(row[name]))]),
    );
  });

  test('the function id filters the table and the legend', async () => {
    const parameters = { project: 'slow-river', interval: '7day', function_id: 'level' };
    const { page } = tab;
    await tab.goTo('?view=functions&project=slow-river&range=7day');
    await page.getByLabel('Function id').fill('level');
    await page.getByLabel('Function id').press('Enter');
    const { rows } = await queryApi('functions.invocation-stats', parameters);
    const total = rows.reduce((sum, row) => sum + Number(row['count']), 0);
    await page.getByText(`of ${total.toLocaleString('en-GB')} invocations`).waitFor();
    await page.getByText('All values as a table').click();
    const table = await readTable(page, 'Invocations, errors and execution times');
    expect(table.map(cells => cells[1])).toEqual(rows.map(row => String(row['count'])));
  });
});

describe('API usage view', () => {
  const AREAS = ['rest', 'auth', 'storage', 'realtime'].map(area => `total_${area}_requests`);

  test.each([
    ['1hr', 'minutely'],
    ['7day', 'daily'],
  ])('range %s: table and legend have the values of the API', async (range, interval) => {
    await tab.goTo(`?view=usage&project=busy-market&range=${range}`);
    await tab.page.getByText('All values as a table').click();
    const table = await readTable(tab.page, 'Requests by service area');
    const { rows } = await queryApi('usage.api-counts', { project: 'busy-market', interval });
    expect(rows.length).toBeGreaterThan(0);
    expect(table).toEqual(
      rows.map(row => [
        iso(Date.parse(String(row['timestamp'])) * 1000),
        ...AREAS.map(name => String(row[name])),
      ]),
    );
    for (const name of AREAS) {
      const total = rows.reduce((sum, row) => sum + Number(row[name]), 0);
      const entry = tab.page.locator(`[data-series="${name}"] .legend-value`);
      expect(await entry.textContent()).toBe(total.toLocaleString('en-GB'));
    }
  });
});

describe('logs view', () => {
  const readRows = () =>
    tab.page.locator('.log-row').evaluateAll(elements =>
      elements.map(element => ({
        at: element.querySelector('time')?.getAttribute('datetime'),
        status: element.querySelector('.status')?.textContent,
        message: element.querySelector('.log-message')?.textContent,
      })),
    );

  const toExpected = (row: Record<string, unknown>) => ({
    at: new Date(Number(row['timestamp']) / 1000).toISOString().replace('Z', '000Z'),
    status: String((row['metadata'] as { response: { status_code: number } }).response.status_code),
    message: row['event_message'],
  });

  test.each(['FREE', 'PRO'])('tier %s: the table has the newest records of the API', async tier => {
    const project = 'quiet-garden';
    await tab.goTo(`?view=logs&project=${project}&range=all&tier=${tier}`);
    await tab.page.locator('.log-row').first().waitFor();
    const { rows } = await queryApi('logs.all', { project, project_tier: tier });
    expect(await readRows()).toEqual(rows.map(toExpected));
  });

  test('older records are appended without duplicates or gaps', async () => {
    const project = 'stormy-harbor';
    const { page } = tab;
    await tab.goTo(`?view=logs&project=${project}&range=all`);
    await page.getByRole('button', { name: 'Load older records' }).click();
    await page.locator('.log-row').nth(150).waitFor();
    const first = await queryApi('logs.all', { project, project_tier: 'FREE' });
    const last = Number(first.rows.at(-1)?.['timestamp']);
    const end = new Date(last / 1000).toISOString();
    const second = await queryApi('logs.all', { project, project_tier: 'FREE', iso_timestamp_end: end });
    const ids = new Set(first.rows.map(({ id }) => id));
    const expected = [...first.rows, ...second.rows.filter(({ id }) => !ids.has(id))];
    expect(await readRows()).toEqual(expected.map(toExpected));
  });

  test('the view says that records may be missing if they share the timestamp of a whole page, and continues after it', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=tied&range=all');
    const note = page.getByText('Records may be missing');
    const loadOlder = page.getByRole('button', { name: 'Load older records' });
    const ids = async () => (await readRows()).length;
    await page.getByText('100 records', { exact: true }).waitFor();
    expect(await note.isVisible()).toBe(false); // 70 of the 150 records: the next page has more of them
    await loadOlder.click();
    await page.getByText('130 records', { exact: true }).waitFor();
    await note.scrollIntoViewIfNeeded();
    await tab.screenshot('logs-missing');
    await loadOlder.click();
    await page.getByText('160 records', { exact: true }).waitFor();
    expect(await ids()).toBe(160);
    expect(await note.isVisible()).toBe(true);
    expect(await loadOlder.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('160 records', { exact: true }).waitFor();
    expect(await note.isVisible()).toBe(true);
  });

  test('a full page whose records have different timestamps does not say that records may be missing', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=page&range=all');
    await page.getByText('100 records', { exact: true }).waitFor();
    const loadOlder = page.getByRole('button', { name: 'Load older records' });
    await loadOlder.click();
    await loadOlder.waitFor({ state: 'hidden' });
    expect(await page.getByText('Records may be missing').isVisible()).toBe(false);
    expect((await readRows()).length).toBe(100);
  });

  test('one record is counted in the singular', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=single&range=all');
    await page.getByText('1 record', { exact: true }).waitFor();
    await page.getByLabel('Filter loaded records').fill('something');
    await page.getByText('1 of 1 record', { exact: true }).waitFor();
  });

  test('numbers beyond the precision of a double are shown and copied with all their digits', async () => {
    const metadata =
      '{"order":12345678901234567890,"part":0.1,"tiny":1e-400,"nested":{"nanos":1763190896789012345}}';
    const { page } = tab;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.route('**/api/endpoints/query/**', route =>
      route.fulfill({
        body: `{"result":[{"id":"1","timestamp":1763190896789012,"event_message":"big","metadata":${metadata}}]}`,
        contentType: 'application/json',
      }),
    );
    await tab.goTo('?view=logs&project=busy-market&range=all');
    await page.locator('.log-toggle').click();
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

  test('a custom range is entered in the time zone of the user', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=busy-market&tier=PRO&range=custom');
    const end = new Date(Date.now() - 86_400_000);
    end.setUTCHours(12, 0, 0, 0); // at this time, the clocks of Berlin never change
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
    const url = new RegExp(`end=${encodeURIComponent(bounds.iso_timestamp_end)}`);
    await page.waitForURL(url);
    const { rows } = await queryApi('logs.all', { project: 'busy-market', project_tier: 'PRO', ...bounds });
    expect(rows.length).toBeGreaterThan(3);
    await expect.poll(readRows).toEqual(rows.map(toExpected));
  });
});

describe('view of a custom endpoint', () => {
  test('a custom endpoint has a form for its parameters, a table, and charts grouped by magnitude', async () => {
    const { page } = tab;
    await tab.goTo('?view=endpoint.errors.hourly&project=busy-market');
    await page.getByText('Requests per hour, and their REST share.').waitFor();
    await page.getByLabel('period').selectOption('week');
    await page.waitForURL(/p\.period=week/);
    const parameters = { project: 'busy-market', period: 'week' };
    const { rows } = await queryApi('errors.hourly', parameters);
    expect(rows.length).toBeGreaterThan(100);
    const expected = rows.map(row => [
      iso(Date.parse(String(row['hour'])) * 1000),
      String(row['requests']),
      String(row['rest_share']),
    ]);
    await expect.poll(() => readTable(page, 'Rows of errors.hourly')).toEqual(expected);
    expect(await page.locator('.chart:visible').count()).toBe(2); // shares would look flat next to counts
  });

  test('the rows of a custom endpoint can be sorted, saved as CSV and requested with curl', async () => {
    const { page } = tab;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await tab.goTo('?view=endpoint.paths.top&project=busy-market');
    const { rows } = await queryApi('paths.top', { project: 'busy-market' });
    const paths = rows.map(row => String(row['path']));
    const readPaths = async () => (await readTable(page, 'Rows of paths.top')).map(([path]) => path);
    expect(await readPaths()).toEqual(paths);
    await page.getByRole('button', { name: 'path', exact: true }).click();
    expect(await readPaths()).toEqual([...paths].sort());
    await page.getByRole('button', { name: 'requests', exact: true }).click();
    // Paths with equally many requests stay in the order of the response.
    const ascending = [...rows].sort((a, b) => Number(a['requests']) - Number(b['requests']));
    expect(await readPaths()).toEqual(ascending.map(row => row['path']));
    await page.getByRole('button', { name: 'requests', exact: true }).click();
    expect(await readPaths()).toEqual(paths);
    expect(await page.getByRole('columnheader', { name: 'requests' }).getAttribute('aria-sort')).toBe(
      'descending',
    );
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const text = await readText(await (await downloading).createReadStream());
    expect(text.split('\r\n')[1]).toBe(`${paths[0]},${rows[0]?.['requests']}`);
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('Copied').waitFor();
    const command = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(command).toContain("--data-urlencode 'project=busy-market'");
    expect(command).not.toContain(inject('token'));
  });

  test('a CSV file has negative numbers as numbers, and no formula', async () => {
    const { page } = tab;
    const rows = ['-12.5', '-1+1', '=1', '-'].map((path, i) => ({ path, requests: -i - 0.5 }));
    await page.route('**/query/paths.top?**', route => route.fulfill({ json: { result: rows } }));
    await tab.goTo('?view=endpoint.paths.top&project=busy-market');
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const text = await readText(await (await downloading).createReadStream());
    expect(text.split('\r\n').slice(1, 5)).toEqual(['-12.5,-0.5', "'-1+1,-1.5", "'=1,-2.5", "'-,-3.5"]);
  });

  test('a time of a custom endpoint is entered in the time zone of the user', async () => {
    const { page } = tab;
    await tab.goTo('?view=endpoint.errors.hourly&project=busy-market&p.after=2026-11-14T09:30:00Z');
    const field = page.getByLabel('after', { exact: true });
    expect(await field.inputValue()).toBe('2026-11-14T10:30');
    await field.fill('2026-11-15T12:00');
    await field.press('Enter');
    await page.waitForURL(url => url.searchParams.get('p.after') === '2026-11-15T11:00:00Z');
  });

  test('rows of one time are lines by a text column', async () => {
    const { page } = tab;
    await page.route('**/api/endpoints', async route => {
      const response = await route.fetch();
      const catalog = (await response.json()) as { result: { name: string; columns: object[] }[] };
      const column = { name: 'region', type: 'text', nullable: false, description: 'Region.' };
      catalog.result.find(({ name }) => name === 'errors.hourly')?.columns.push(column);
      await route.fulfill({ response, json: catalog });
    });
    let regions = ['eu', '<img src=x>'];
    const createRows = () =>
      [8, 9].flatMap(hour =>
        regions.map(region => ({
          hour: `2026-11-14T0${hour}:00:00Z`,
          requests: hour,
          rest_share: 0,
          region,
        })),
      );
    await page.route('**/query/errors.hourly?**', route =>
      route.fulfill({ json: { result: createRows() }, headers: { 'Dendro-Clipped': 'retention' } }),
    );
    await tab.goTo('?view=endpoint.errors.hourly&project=busy-market');
    const legend = () => page.locator('.legend-name').allTextContents();
    await expect.poll(legend).toEqual(['eu', '<img src=x>']);
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    await page.getByText('4 rows, only those within the retention').waitFor();
    regions = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('heading', { name: 'a, b, c, d, e, f (6 of 8)' }).waitFor();
    regions = ['a', 'a'];
    await page.getByRole('button', { name: 'Refresh' }).click();
    await expect.poll(legend).toEqual(['requests', 'rest_share']);
    await page.unrouteAll();
  });

  test('the legend shows a dash for a column of a custom endpoint that has no values', async () => {
    const { page } = tab;
    const rows = [8, 9].map(hour => ({
      hour: `2026-11-14T0${hour}:00:00Z`,
      requests: hour,
      rest_share: null,
    }));
    await page.route('**/query/errors.hourly?**', route => route.fulfill({ json: { result: rows } }));
    await tab.goTo('?view=endpoint.errors.hourly&project=busy-market');
    const values = page.locator('.legend-value');
    await values.first().waitFor();
    expect(await values.allTextContents()).toEqual(['9', '–']);
    await page.unrouteAll();
  });

  test('a custom endpoint with pages has buttons for them, and another parameter or project leads to the first page', async () => {
    const { page } = tab;
    const readIds = async () => (await readTable(page, 'Rows of records.paged')).map(([id]) => id);
    const button = (name: string) => page.getByRole('button', { name });
    const firstOf = (id: string) => page.getByRole('cell', { name: id, exact: true }).waitFor();
    await tab.goTo('?view=endpoint.records.paged&project=page');
    await firstOf('page-000');
    expect(await button('First page').isVisible()).toBe(false);
    expect(await page.getByLabel('cursor').count()).toBe(0);
    const ids = await readIds();
    for (const first of ['page-040', 'page-080']) {
      await button('Next page').click();
      await firstOf(first);
      ids.push(...(await readIds()));
    }
    expect(ids).toEqual(Array.from({ length: 100 }, (_, i) => `page-${String(i).padStart(3, '0')}`));
    expect(await button('Next page').isVisible()).toBe(false);
    await button('First page').click();
    await firstOf('page-000');

    await button('Next page').click();
    await firstOf('page-040');
    await tab.screenshot('endpoint-pages');
    await page.getByLabel('period').selectOption('week');
    await firstOf('page-000');
    await button('Next page').click();
    await firstOf('page-040');
    await page.getByRole('combobox', { name: 'Project' }).fill('tied');
    await page.getByRole('combobox', { name: 'Project' }).press('Enter');
    await firstOf('tied-000');
  });

  test('a custom endpoint whose time limit ends before it finds a row leads to the next page', async () => {
    const { page } = tab;
    const { headers } = await queryApi('records.paged', { project: 'page' });
    const cursor = headers.get('dendro-next-cursor') ?? '';
    await page.route(
      '**/api/endpoints/query/records.paged?**',
      route =>
        route.fulfill({
          contentType: 'application/json',
          body: '{"result":[]}',
          headers: { 'Dendro-Clipped': 'time-limit', 'Dendro-Next-Cursor': cursor },
        }),
      { times: 1 },
    );
    await tab.goTo('?view=endpoint.records.paged&project=page');
    await page.getByText('No rows so far').waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByRole('cell', { name: 'page-040', exact: true }).waitFor();

    await page.route('**/api/endpoints/query/records.paged?**', route =>
      route.fulfill({ contentType: 'application/json', body: '{"result":[]}' }),
    );
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByText('No more rows').waitFor();
    await tab.screenshot('endpoint-empty-page');
    await page.unroute('**/api/endpoints/query/records.paged?**');
    await page.getByRole('button', { name: 'First page' }).click();
    await page.getByRole('cell', { name: 'page-000', exact: true }).waitFor();
  });

  test('a custom endpoint without a time column has no chart, and the page reports a reached row limit', async () => {
    const { page } = tab;
    await tab.goTo('?view=endpoint.paths.top&project=busy-market');
    await page.getByText('5 rows, limited by the endpoint’s max_rows').waitFor();
    const { rows } = await queryApi('paths.top', { project: 'busy-market' });
    expect(await readTable(page, 'Rows of paths.top')).toEqual(
      rows.map(row => [String(row['path']), String(row['requests'])]),
    );
    expect(await page.locator('.chart:visible').count()).toBe(0);
  });
});

describe('intervals and tiers', () => {
  type Parameter = {
    name: string;
    choices: string[];
    choice_values: Record<string, object>;
    fallback: string;
  };

  /** Opens a page whose catalog has one more choice, which is also the fallback. */
  const openWithChoice = async (search: string, parameterName: string, name: string, values: object) => {
    const { page } = tab;
    await page.route('**/api/endpoints', async route => {
      const response = await route.fetch();
      const catalog = (await response.json()) as { result: { parameters: Parameter[] }[] };
      for (const parameter of catalog.result.flatMap(({ parameters }) => parameters))
        if (parameter.name === parameterName) {
          parameter.choices.push(name);
          parameter.choice_values[name] = values;
          parameter.fallback = name;
        }
      await route.fulfill({ response, json: catalog });
    });
    await tab.goTo(search);
    await page.getByRole('navigation').waitFor();
    await page.unrouteAll();
  };

  test('a range uses the interval of the catalog that has the shortest buckets', async () => {
    const quarters = { window_seconds: 86_400, bucket_seconds: 900 };
    await openWithChoice('?view=usage&project=busy-market&range=1day', 'interval', 'quarterly', quarters);
    const sent = () => tab.apiRequests.findLast(({ url }) => url.pathname.endsWith('/usage.api-counts'));
    await expect.poll(() => sent()?.url.searchParams.get('interval')).toBe('quarterly');
  });

  test('a page shows the tier with the longest retention, unless its link has another, which it names', async () => {
    const { page } = tab;
    const days = { retention_days: 400 };
    await openWithChoice('?view=logs&project=busy-market&range=7day', 'project_tier', 'TEAM', days);
    const sent = () => tab.apiRequests.findLast(({ url }) => url.pathname.endsWith('/logs.all'));
    await expect.poll(() => sent()?.url.searchParams.get('project_tier')).toBe('TEAM');
    expect(page.url()).not.toContain('tier');
    await tab.goTo('?view=logs&project=busy-market&range=7day&tier=FREE');
    await page.getByText('The time range starts before the retention of the tier').waitFor();
    await page.getByRole('button', { name: 'Without the limit of FREE' }).click();
    await page.getByText('The time range starts before').waitFor({ state: 'hidden' });
    expect(sent()?.url.searchParams.get('project_tier')).toBe('ENTERPRISE');
  });
});
