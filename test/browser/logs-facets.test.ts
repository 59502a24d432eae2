// The facets beside the log list: counts and shares of errors, include and exclude, added fields, and the facet of the log kinds.
import { expect, inject, test } from 'vitest';
import { checkAppearance } from './support/accessibility.ts';
import { HTML } from './support/search-records.ts';
import { openTab, PHONE, queryApi, useTab } from './support/tab.ts';

const { tab, count, rows, settings, open } = useTab({
  token: inject('exploreToken'),
  expectedStatuses: [400],
});

const SEARCH = '?view=logs&project=search&kind=edge&range=all';
const facet = (field: string) =>
  tab.page
    .locator('.facet')
    .filter({ has: tab.page.locator('summary', { hasText: new RegExp(`^${field}$`) }) });
const value = (field: string, text: string) => facet(field).locator('.facet-value', { hasText: text });

test('a facet has the values of the field with their counts and shares of errors', async () => {
  await open(SEARCH);
  await value('status', '503').waitFor();
  const { rows: expected } = await queryApi('logs.top', {
    project: 'search',
    kind: 'edge',
    field: 'status',
    project_tier: 'PRO',
  });
  const read = () =>
    facet('status')
      .locator('.facet-value')
      .evaluateAll(items =>
        items.map(item => [...item.querySelectorAll('span')].map(({ textContent }) => textContent)),
      );
  expect(await read()).toEqual(
    expected.map(row => [
      String(row['value']),
      ...(row['error_share'] === 1 ? ['100%'] : []),
      String(row['count']),
    ]),
  );
});

test('a click includes a value, a second value is an alternative, and another click removes the term', async () => {
  await open(SEARCH);
  await value('status', '503').click();
  await tab.page.waitForURL(/query=status%3A503/);
  await count().getByText('50 records', { exact: true }).waitFor();
  await expect.poll(() => value('status', '503').getAttribute('aria-pressed')).toBe('true');
  // The other values are still there.
  await value('status', '404').click();
  await expect.poll(() => settings()['query']).toBe('status:503 status:404');
  await count().getByText('Newest 100 records').waitFor();
  await value('status', '503').click();
  await expect.poll(() => settings()['query']).toBe('status:404');
});

test('a click with Alt excludes a value, and so do Alt and Enter and the button beside it', async () => {
  await open(SEARCH);
  await value('status', '503').click({ modifiers: ['Alt'] });
  await expect.poll(() => settings()['query']).toBe('-status:503');
  await count().getByText('of 200 records').waitFor();
  await value('method', 'GET').focus();
  await tab.page.keyboard.press('Alt+Enter');
  await expect.poll(() => settings()['query']).toBe('-status:503 -method:GET');
  await tab.page.getByRole('button', { name: 'Exclude method GET' }).click();
  await expect.poll(() => settings()['query']).toBe('-status:503');
});

test('the facet of the log kinds is a term in a search of all kinds, and chooses the kind in a search of one', async () => {
  const { page } = tab;
  await open('?view=logs&project=traced&range=all');
  await expect.poll(() => facet('kind').locator('.facet-value:visible').count()).toBe(6);
  await facet('kind').getByRole('button', { name: 'Show 3 more' }).click();
  await value('kind', 'Postgres').click();
  await expect.poll(() => settings()).toMatchObject({ kind: 'all', query: 'kind:postgres' });
  await expect.poll(() => rows().count()).toBe(1);
  await open('?view=logs&project=traced&kind=edge&range=all');
  await facet('kind').getByRole('button', { name: /more/ }).click();
  await value('kind', 'Storage').click();
  await page.waitForURL(/kind=storage/);
  expect(settings()['query']).toBeUndefined();
});

test('any field of the metadata can be added as a facet, stands in the link, and is shown as text', async () => {
  const { page } = tab;
  await open(SEARCH);
  await page.getByLabel('Add a field').first().fill('headers.note');
  await page.getByRole('option', { name: 'request.headers.note' }).click();
  await page.waitForURL(/facets=request.headers.note/);
  await value('request.headers.note', HTML).waitFor();
  expect(await page.locator('img[src="x"]').count()).toBe(0);
  await value('request.headers.note', HTML).click();
  await count().getByText('1 record', { exact: true }).waitFor();
  await page.reload();
  await value('request.headers.note', HTML).waitFor();
  await facet('request.headers.note').getByRole('button', { name: 'Remove this facet' }).click();
  await page.waitForURL(url => !url.searchParams.has('facets'));
  await expect.poll(() => facet('request.headers.note').count()).toBe(0);
});

test('f goes to the facets, and only open facets are loaded', async () => {
  const { page } = tab;
  await open(SEARCH);
  await value('status', '503').waitFor();
  const fields = () =>
    tab.apiRequests
      .filter(({ url }) => url.pathname.endsWith('/logs.top'))
      .map(({ url }) => url.searchParams.get('field'));
  await expect.poll(fields).toEqual(['kind', 'status', 'method']);
  await facet('method').locator('li').first().waitFor();
  await page.keyboard.press('f');
  expect(await page.evaluate('document.activeElement.closest(".facets") !== null')).toBe(true);
  await facet('path').locator('summary').click();
  await value('path', '/auth/v1/token').waitFor();
  expect(fields()).toEqual(['kind', 'status', 'method', 'path']);
});

test('a token without logs.top has the list without facets', async () => {
  const other = await openTab({ token: inject('searchToken') });
  await other.goTo('?view=logs&project=search&range=all');
  await other.page.locator('.log-row').first().waitFor();
  expect(await other.page.getByText('Facets').count()).toBe(0);
  await other.close();
});

test('the facets fit every width and are accessible in both themes', async () => {
  const other = await openTab({ token: inject('exploreToken'), viewport: PHONE });
  const { page } = other;
  await other.goTo(SEARCH);
  await page.locator('.log-row').first().waitFor();
  await page.locator('.histogram [data-series]').first().waitFor();
  await page.getByText('Facets').click();
  await page.locator('.facet-value').first().waitFor();
  await checkAppearance(other, 'logs-facets');
  await other.close();
});
