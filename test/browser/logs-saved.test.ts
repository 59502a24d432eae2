// Saved searches and recent searches, which are kept in the browser.
import { expect, inject, test } from 'vitest';
import { checkAppearance } from './support/accessibility.ts';
import { HTML } from './support/search-records.ts';
import { useTab } from './support/tab.ts';

const { tab, settings, open } = useTab({
  token: inject('exploreToken'),
  permissions: ['clipboard-read', 'clipboard-write'],
});

const openMenu = () => tab.page.getByText('Saved', { exact: true }).click();

test('a search can be saved, opened in another project, copied as a link and removed', async () => {
  const { page } = tab;
  await open('?view=logs&project=search&kind=edge&range=all&query=status:5xx&columns=status,path');
  await openMenu();
  await page.getByLabel('Name of this search').fill('failed requests');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'failed requests' }).waitFor();
  await checkAppearance(tab, 'logs-saved');

  await open('?view=logs&project=burst&kind=all&range=1day');
  await openMenu();
  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByText('Copied').waitFor();
  const link = new URL(await page.evaluate<string>('navigator.clipboard.readText()'));
  const expected = {
    view: 'logs',
    project: 'burst',
    kind: 'edge',
    query: 'status:5xx',
    columns: 'status,path',
    range: '1day',
  };
  expect(Object.fromEntries(link.searchParams)).toEqual(expected);
  await page.getByRole('link', { name: 'failed requests' }).click();
  await expect.poll(settings).toEqual(expected);
  await openMenu();
  await page.getByRole('button', { name: 'Remove failed requests' }).click();
  await page.getByText('None yet').waitFor();
});

test('an empty search box suggests the expressions that were used last', async () => {
  const { page } = tab;
  await open('?view=logs&project=search&kind=edge&range=all');
  const box = page.getByRole('combobox', { name: 'Search' });
  for (const query of ['status:404', `"${HTML}"`]) {
    await box.fill(query);
    await box.press('Enter');
    await expect.poll(() => settings()['query']).toBe(query);
  }
  await box.fill('');
  await box.press('Enter');
  await box.click();
  const recent = page.getByRole('group', { name: 'Recent searches' }).getByRole('option');
  await expect.poll(() => recent.allTextContents()).toEqual([`"${HTML}"`, 'status:404']);
  expect(await page.locator('img[src="x"]').count()).toBe(0);
  await recent.last().click();
  await expect.poll(() => settings()['query']).toBe('status:404');
});
