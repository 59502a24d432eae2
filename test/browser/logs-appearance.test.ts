// Checks that the search of the logs view fits narrow and wide windows and is accessible in both themes. Saves screenshots in
// test/browser/output.
import { inject, test } from 'vitest';
import { checkAppearance } from './support/accessibility.ts';
import { openTab } from './support/tab.ts';

test('the search fits every width and is accessible in both themes', async () => {
  const tab = await openTab({ token: inject('exploreToken'), expectedStatuses: [400] });
  const { page } = tab;
  await tab.goTo('?view=logs&project=stormy-harbor&range=1hr');
  await page.locator('.log-row').first().waitFor();
  await page.locator('.histogram [data-series]').first().waitFor();
  await page.locator('.log-toggle').nth(1).click();
  await page.locator('.tree .value').first().click();
  await checkAppearance(tab, 'logs-search');
  await page.getByRole('combobox', { name: 'Search' }).click();
  await page.keyboard.type('status:');
  await page.locator('.search-box').getByRole('option').first().waitFor();
  await checkAppearance(tab, 'logs-suggestions');
  await tab.goTo('?view=logs&project=traced&range=1day&kind=all');
  await page.locator('.histogram [data-series]').first().waitFor();
  await page.locator('.log-toggle').first().click();
  await checkAppearance(tab, 'logs-all-kinds');
  await tab.goTo(
    `?view=logs&project=search&range=all&kind=postgres&query=${encodeURIComponent('status:500 "a')}`,
  );
  await page.getByRole('alert').waitFor();
  await checkAppearance(tab, 'logs-invalid-search');
  await tab.close();
}, 180_000);
