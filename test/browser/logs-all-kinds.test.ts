// The search in all log kinds at once: list, histogram, details, live tail, links, CSV, suggestions, and the logs of one request.
import { text as readText } from 'node:stream/consumers';
import { expect, inject, test } from 'vitest';
import { RAY } from './support/search-records.ts';
import { sendLogs } from './support/send-logs.ts';
import { queryApi, readTable, useTab } from './support/tab.ts';

const TITLES = [
  ...['Edge requests', 'Postgres', 'Function requests', 'Function output', 'Auth', 'Realtime'],
  ...['Storage', 'REST API', 'Pooler'],
];
const TRACED = '?view=logs&project=traced&range=all&kind=all';

const { tab, settings, button, open } = useTab({
  token: inject('exploreToken'),
  permissions: ['clipboard-read', 'clipboard-write'],
  expectedStatuses: [400],
});

const box = () => tab.page.getByRole('combobox', { name: 'Search' });
const readCells = (index: number) => tab.page.locator(`.log-row td:nth-child(${index})`).allTextContents();

test('the list shows the kind and the status or level of each record, the histogram the kinds', async () => {
  await open('?view=logs&project=traced&kind=edge&range=all');
  const { page } = tab;
  await page.getByLabel('Log', { exact: true }).selectOption('All logs');
  await page.waitForURL(/kind=all/);
  await expect.poll(() => readCells(2)).toEqual(TITLES);
  const headings = await page.locator('.log-table th').allTextContents();
  expect(headings.slice(1)).toEqual(['Log', 'Status', 'Message']);
  const expected = ['503', 'error', '200', 'warning', '401', 'info', '404', 'info', 'info'];
  expect(await readCells(3)).toEqual(expected);
  await page.locator('.histogram [data-series="pooler"]').waitFor();
  const legend = await page.locator('.histogram .legend-name').allTextContents();
  expect([...legend].sort()).toEqual([...TITLES].sort());
  const colors = await page.evaluate<string[]>(
    "[...document.querySelectorAll('.histogram .legend-name .swatch')].map(each => getComputedStyle(each).backgroundColor)",
  );
  expect(new Set(colors).size).toBe(9);
  await page.getByText('Counts as a table').click();
  const table = await readTable(page, 'Records by time and category');
  expect(table.map(cells => cells[1]).sort()).toEqual([...TITLES].sort());
});

test('the details of a record are those of its own kind', async () => {
  await open(TRACED);
  const { page } = tab;
  await page.locator('.log-toggle').nth(1).click();
  await page.locator('.details').getByText('Postgres', { exact: true }).waitFor();
  await page.locator('.tree .value', { hasText: 'ERROR' }).click();
  await button('Include level ERROR').click();
  await page.waitForURL(/query=level%3AERROR/);
  await expect.poll(() => readCells(2)).toEqual(['Postgres']);
});

test('all logs of the same request are one click away', async () => {
  await open('?view=logs&project=traced&kind=edge&range=all');
  await tab.page.locator('.log-toggle').first().click();
  await button('Same request').click();
  await tab.page.waitForURL(/kind=all/);
  expect(settings()).toMatchObject({ query: RAY, range: 'custom' });
  await expect.poll(() => readCells(2)).toEqual(['Edge requests', 'Postgres', 'Function output']);
  const { start = '', end = '' } = settings();
  expect(Date.parse(end) - Date.parse(start)).toBe(2 * 3_600_000);
});

test('a link to a record shows the records of all kinds around it', async () => {
  await open(TRACED);
  await tab.page.locator('.log-toggle').nth(4).click();
  await button('Copy link').click();
  await tab.page.getByText('Copied').waitFor();
  await open(new URL(await tab.page.evaluate<string>('navigator.clipboard.readText()')).search);
  await expect.poll(() => readCells(2)).toEqual(TITLES);
  const current = tab.page.locator('.log-row[aria-current] .log-message');
  expect(await current.textContent()).toBe('auth record');
});

test('the live tail shows new records of all kinds, also with the same time and id', async () => {
  const { page } = tab;
  const project = 'tail-of-all';
  const send = async (kind: string, id: string, timestamp: string) => {
    await sendLogs(kind, [{ project, id, timestamp, event_message: `${kind} ${id}` }]);
    await expect
      .poll(
        async () => (await queryApi('logs.search', { project, kind, query: `"${kind} ${id}"` })).rows.length,
      )
      .toBe(1);
  };
  const [earlier = '', later = ''] = [2000, 1000].map(ago => new Date(Date.now() - ago).toISOString());
  await send('edge', 'one', earlier);
  await page.clock.install();
  await open(`?view=logs&project=${project}&range=all&kind=all`);
  await send('edge', 'two', later);
  await send('auth', 'two', later);
  await page.clock.runFor(3500);
  const read = () => page.locator('.log-message').allTextContents();
  await expect.poll(async () => (await read()).sort()).toEqual(['auth two', 'edge one', 'edge two']);
});

test('the CSV file has the kind of each record once', async () => {
  await open(TRACED);
  const downloading = tab.page.waitForEvent('download');
  await button('Download CSV').click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe('all-traced.csv');
  const lines = (await readText(await download.createReadStream())).trimEnd().split('\r\n');
  expect(lines[0]).toBe('timestamp,id,kind,status_or_level,event_message,metadata');
  expect(lines[2]).toContain(',traced-postgres,postgres,ERROR,postgres record,');
});

test('the box suggests the fields of all kinds, and replaces only the term at the caret', async () => {
  await open(TRACED);
  const options = tab.page.locator('.search-box').getByRole('option');
  const names = async () => (await options.allTextContents()).map(text => text.split(':')[0]);
  await box().click();
  await expect.poll(names).toEqual(['status', 'method', 'path', 'host', 'function', 'level', 'kind']);
  for (const complete of ['a OR', '(a OR b)']) {
    await box().fill(complete); // a suggestion here would become a part of the operator
    await expect.poll(names).toEqual([]);
  }
  await box().fill('(status:503 OR kin) -x');
  await box().press('Home');
  for (let i = 0; i < '(status:503 OR kin'.length; i++) await box().press('ArrowRight');
  await box().press('Escape');
  await box().press('ArrowDown');
  await expect.poll(names).toEqual(['kind']);
  await options.first().click();
  expect(await box().inputValue()).toBe('(status:503 OR kind:) -x');
  await tab.page.getByRole('option', { name: 'kind:postgres 1 record' }).click();
  await tab.page.waitForURL(/query=/);
  expect(settings()['query']).toBe('(status:503 OR kind:postgres) -x');
});

test('the box suggests the paths in the metadata of the loaded records, and their values', async () => {
  await open(TRACED);
  await box().fill('cf_r');
  const options = tab.page.locator('.search-box').getByRole('option');
  await expect.poll(() => options.allTextContents()).toEqual(['metadata.cf_ray:', 'request.headers.cf_ray:']);
  await options.last().click();
  await tab.page.getByRole('option', { name: `request.headers.cf_ray:${RAY} 1 record` }).click();
  await expect.poll(() => readCells(2)).toEqual(['Edge requests']);
});

test('the help has examples of search expressions', async () => {
  await open(TRACED);
  await tab.page.keyboard.press('?');
  const dialog = tab.page.getByRole('dialog', { name: 'Keyboard shortcuts and search' });
  await dialog.getByText('a (b OR c)').waitFor();
  const examples = await dialog.locator('code').allTextContents();
  for (const query of examples) {
    const { status } = await queryApi('logs.search', { project: 'traced', kind: 'all', query });
    expect([query, status]).toEqual([query, 200]);
  }
});
