// The tabs of the logs view: the patterns of the messages, and what is different about the records of a search or a time range.
import { describe, expect, inject, test } from 'vitest';
import { checkAppearance } from './support/accessibility.ts';
import { HOSTILE, sendHostileRecords } from './support/hostile-records.ts';
import { queryApi, useTab } from './support/tab.ts';

const { tab, settings } = useTab({ token: inject('exploreToken'), expectedStatuses: [400] });

const tabButton = (name: string) => tab.page.locator('.search-tabs').getByRole('button', { name });
const patterns = () => tab.page.locator('.pattern');
const differences = () => tab.page.locator('.difference');

describe('patterns', () => {
  test('the tab has the patterns of the API, marks new ones, and shows a sample', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=stormy-harbor&range=1day');
    await page.locator('.log-row').first().waitFor();
    await tabButton('Patterns').click();
    await page.waitForURL(/tab=patterns/);
    await patterns().first().waitFor();
    const sent = tab.apiRequests.findLast(({ url }) => url.pathname.endsWith('/logs.patterns'));
    const parameters = Object.fromEntries(sent?.url.searchParams ?? []);
    expect(parameters).toMatchObject({ project: 'stormy-harbor', kind: 'all' });
    const { rows } = await queryApi('logs.patterns', parameters);
    const texts = await page.locator('.pattern-text').allTextContents();
    expect(texts.slice(0, 5)).toEqual(rows.slice(0, 5).map(row => row['pattern']));
    const isNew = rows.findIndex(row => row['count_before'] === 0);
    expect(await patterns().nth(isNew).locator('.badge').textContent()).toBe('new');
    await patterns().first().locator('summary').click();
    await patterns().first().locator('.details-message').getByText(String(rows[0]?.['sample'])).waitFor();
  });

  test('the records of a pattern are one click away, and a pattern can be excluded', async () => {
    const { page } = tab;
    await tab.goTo(
      '?view=logs&project=stormy-harbor&range=1day&tab=patterns&kind=postgres&query=level:error',
    );
    const first = patterns().first();
    await first.locator('summary').click();
    await first.getByRole('button', { name: 'Show these records' }).click();
    await page.waitForURL(url => !url.searchParams.has('tab'));
    expect(settings()['query']).toMatch(/^level:error ".*"$/);
    await page.locator('.log-row').first().waitFor();
    await page.goBack();
    await page.waitForURL(/tab=patterns/);
    await page.reload();
    await patterns().first().locator('summary').click();
    await patterns().first().getByRole('button', { name: 'Exclude' }).click();
    await expect.poll(() => settings()['query']).toMatch(/^level:error -".*"$/);
  });
});

describe('what is different', () => {
  test('errors are compared with the other records of the range, and a click adds the value to the search', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=search&kind=edge&range=all&query=path:/auth*');
    await page.locator('.log-row').first().waitFor();
    await tabButton('What is different?').click();
    await differences().first().waitFor();
    const { rows } = await queryApi('logs.compare', {
      project: 'search',
      kind: 'edge',
      query: 'path:/auth*',
      project_tier: 'PRO',
    });
    const names = await page.locator('.difference-name').allTextContents();
    expect(names).toEqual(rows.map(row => `${row['field']} ${row['value']}`));
    const [share] = await differences().first().locator('.difference-share').allTextContents();
    expect(share).toBe(
      Number(rows[0]?.['share']).toLocaleString('en-GB', { style: 'percent', maximumFractionDigits: 1 }),
    );
    await differences().first().click();
    await page.waitForURL(url => !url.searchParams.has('tab'));
    expect(settings()['query']).toContain(`path:/auth* ${rows[0]?.['field']}:`);
  });

  test('a range that was selected in any chart is compared with the time around it', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=stormy-harbor&range=1day&function=book-berth');
    await page.getByRole('img', { name: /^Invocations/ }).focus();
    for (const key of ['End', 'Shift+ArrowLeft', 'Enter']) await page.keyboard.press(key);
    await page.waitForURL(/range=custom/);
    await page.getByRole('button', { name: 'What is different?' }).click();
    await page.waitForURL(/tab=compare/);
    const { kind, query, start = '', end = '' } = settings();
    expect([kind, query]).toEqual(['function_edge', 'function:book-berth']);
    await differences().first().waitFor();
    const sent = tab.apiRequests.findLast(({ url }) => url.pathname.endsWith('/logs.compare'))?.url
      .searchParams;
    const length = Date.parse(end) - Date.parse(start);
    expect(Date.parse(sent?.get('baseline_start') ?? '')).toBe(Date.parse(start) + 1 - 2 * length);
    await tab.screenshot('logs-compare');
  });

  test('patterns outside the retention of the tier are mentioned', async () => {
    await tab.goTo('?view=logs&project=search&range=7day&tier=FREE&tab=patterns');
    await tab.page.getByText('starts before the retention of the tier').waitFor();
  });

  test('without a range and a search, the tab says what to do', async () => {
    await tab.goTo('?view=logs&project=search&range=all&tab=compare');
    await tab.page.getByText('Drag over a chart to select a time range').waitFor();
  });
});

test('an invalid search is an error in the tabs too', async () => {
  await tab.goTo(`?view=logs&project=search&tab=patterns&query=${encodeURIComponent('"a')}`);
  await tab.page.getByRole('alert').getByText('at character 1').waitFor();
});

test('texts of records are shown as text, never as HTML or links', async () => {
  const { page } = tab;
  await sendHostileRecords('hostile-tabs');
  const search = '?view=logs&project=hostile-tabs&range=1hr';
  await tab.goTo(`${search}&tab=patterns`);
  await page.locator('.pattern-text').first().waitFor();
  await patterns().first().locator('summary').click();
  await tab.goTo(`${search}&kind=edge&tab=compare&query=status:500`);
  await page.locator('.difference-name').getByText(HOSTILE).first().waitFor();
  await tab.goTo(
    `${search}&kind=function_edge&facets=metadata.function_id&columns=function,metadata.function_id`,
  );
  await page.locator('.facet-value').getByText(HOSTILE).first().waitFor();
  await page.locator('.log-toggle').first().click();
  for (const name of ['JSON', 'Surrounding records'])
    await page.locator('.details').getByRole('button', { name }).first().click();
  await page.locator('.surroundings').waitFor();
  expect(await page.locator('img[src="x"], a[href^="javascript"]').count()).toBe(0);
  expect(await page.locator('body').isVisible()).toBe(true);
});

test.each([
  ['patterns', ''],
  ['compare', 'status:>=500'],
] as const)('the tab %s fits every width and is accessible in both themes', async (name, query) => {
  const { page } = tab;
  await tab.goTo(
    `?view=logs&project=stormy-harbor&range=1hr&kind=edge&tab=${name}&query=${encodeURIComponent(query)}`,
  );
  await page.locator('.pattern, .difference').first().waitFor();
  await page.locator('.histogram [data-series]').first().waitFor();
  await checkAppearance(tab, `logs-${name}`);
});
