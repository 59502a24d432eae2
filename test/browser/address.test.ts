import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { type Visitor, visit } from './support/visitor.ts';

let visitor: Visitor;
beforeEach(async () => {
  visitor = await visit({ token: inject('token') });
});
afterEach(() => visitor.leave());

const settings = () => Object.fromEntries(new URL(visitor.page.url()).searchParams);

describe('the address', () => {
  test('names project, view and interval from the start, and shows the same when it is opened again', async () => {
    const { page } = visitor;
    await visitor.goTo('');
    await page.getByLabel('Project').fill('slow-river');
    await page.getByLabel('Project').press('Enter');
    await page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(settings()).toEqual({ view: 'functions', project: 'slow-river', interval: '1day' });
    await page.getByRole('radio', { name: 'The last 7 days' }).check();
    await page.getByLabel('Function id').fill('level');
    await page.getByLabel('Function id').press('Enter');
    await page.waitForURL(/function=level/);
    const link = page.url();

    const other = await visit({ token: inject('token') });
    await other.goTo(new URL(link).search);
    await other.page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(await other.page.getByLabel('Project').inputValue()).toBe('slow-river');
    expect(await other.page.getByLabel('Function id').inputValue()).toBe('level');
    expect(await other.page.getByRole('radio', { name: 'The last 7 days' }).isChecked()).toBe(true);
    expect(await other.page.title()).toBe('Functions · slow-river · Dendro');
    await other.leave();
  });

  test('follows from view to view, keeps the project, and each view its settings', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=usage&project=busy-market&interval=daily');
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.locator('.log-line').first().waitFor();
    expect(settings()).toEqual({ view: 'logs', project: 'busy-market', range: 'all', tier: 'FREE' });
    await page.getByLabel('Tier', { exact: true }).selectOption('PRO');
    await page.getByRole('radio', { name: 'The last 15 minutes' }).check();
    await page.waitForURL(/range=15min/);
    expect(settings()).toEqual({ view: 'logs', project: 'busy-market', range: '15min', tier: 'PRO' });
    await page.getByRole('link', { name: 'API usage' }).click();
    await page.waitForURL(/view=usage/);
    expect(settings()).toEqual({ view: 'usage', project: 'busy-market', interval: 'daily' });
    await page.goBack();
    await page.waitForURL(/view=logs/);
    expect(await page.getByLabel('Tier', { exact: true }).inputValue()).toBe('PRO');
    await page.goBack();
    await page.waitForURL(/range=all/);
    expect(await page.getByRole('radio', { name: 'All that the tier keeps' }).isChecked()).toBe(true);
  });

  test('of a view that does not exist leads to the first, with its project', async () => {
    await visitor.goTo('?view=nonsense&project=busy-market&nonsense=1');
    await visitor.page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(settings()).toEqual({ view: 'functions', project: 'busy-market', interval: '1day' });
  });

  test('with an interval that does not exist is answered as the API answers it', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=functions&project=busy-market&interval=bogus');
    await page.getByRole('img', { name: /Invocations/ }).waitFor();
    expect(await page.getByRole('radio', { name: 'The last day' }).isChecked()).toBe(true);
  });
});
