// The URL holds the state of the page: project, view and settings of the view.
import { describe, expect, inject, test } from 'vitest';
import { openTab, useTab } from './support/tab.ts';

const { tab, settings } = useTab({ token: inject('token') });

describe('URL state', () => {
  test('the URL contains project, view and interval, and reproduces the page in another tab', async () => {
    const { page } = tab;
    await tab.goTo('');
    await page.getByLabel('Project').fill('slow-river');
    await page.getByLabel('Project').press('Enter');
    await page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(settings()).toEqual({ view: 'functions', project: 'slow-river', range: '1hr' });
    await page.getByRole('radio', { name: 'The last 7 days' }).check();
    await page.getByLabel('Function id').fill('level');
    await page.getByLabel('Function id').press('Enter');
    await page.waitForURL(/function=level/);
    const link = page.url();

    const other = await openTab({ token: inject('token') });
    await other.goTo(new URL(link).search);
    await other.page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(await other.page.getByLabel('Project').inputValue()).toBe('slow-river');
    expect(await other.page.getByLabel('Function id').inputValue()).toBe('level');
    expect(await other.page.getByRole('radio', { name: 'The last 7 days' }).isChecked()).toBe(true);
    expect(await other.page.title()).toBe('Functions · slow-river · Dendro');
    await other.close();
  });

  test('the URL keeps the project across views, and the settings of each view', async () => {
    const { page } = tab;
    await tab.goTo('?view=usage&project=busy-market&range=7day');
    await page.getByRole('link', { name: 'Logs', exact: true }).click();
    await page.locator('.log-row').first().waitFor();
    expect(settings()).toEqual({ view: 'logs', project: 'busy-market', range: '7day' });
    await page.getByRole('radio', { name: 'The last 15 minutes' }).check();
    await page.waitForURL(/range=15min/);
    expect(settings()).toEqual({ view: 'logs', project: 'busy-market', range: '15min' });
    await page.getByRole('link', { name: 'Functions' }).click();
    await page.getByLabel('Function id').fill('search');
    await page.getByLabel('Function id').press('Enter');
    await page.waitForURL(/function=search/);
    await page.getByRole('link', { name: 'API usage' }).click();
    await page.waitForURL(/view=usage/);
    expect(settings()).toEqual({ view: 'usage', project: 'busy-market', range: '15min' });
    await page.getByRole('link', { name: 'Functions' }).click();
    await page.waitForURL(/function=search/);
    for (let i = 0; i < 4; i++) await page.goBack();
    await page.waitForURL(/range=15min/);
    await page.goBack();
    await page.waitForURL(/range=7day/);
    expect(await page.getByRole('radio', { name: 'The last 7 days' }).isChecked()).toBe(true);
  });

  test('a URL with an unknown view opens the first view, and an unknown range is the default', async () => {
    const { page } = tab;
    await tab.goTo('?view=nonsense&project=busy-market&nonsense=1&range=bogus');
    await page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(settings()).toMatchObject({ view: 'functions', project: 'busy-market' });
    expect(await page.getByRole('radio', { name: 'The last hour' }).isChecked()).toBe(true);
  });
});
