import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { askApi, type Visitor, visit } from './support/visitor.ts';

let visitor: Visitor;
beforeEach(async () => {
  visitor = await visit({ token: inject('token'), permissions: ['clipboard-read', 'clipboard-write'] });
});
afterEach(() => visitor.leave());

const press = async (...keys: string[]) => {
  for (const key of keys) await visitor.page.keyboard.press(key);
};
const focused = () =>
  visitor.page.evaluate<string>(
    'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent',
  );

describe('the keyboard alone', () => {
  test('skips to the content, and reaches every control in reading order', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=functions&project=busy-market');
    await page.getByRole('img', { name: /Invocations/ }).waitFor();
    const order: string[] = [];
    for (let i = 0; i < 14; i++) {
      await press('Tab');
      order.push(
        (await focused()) ||
          (await page.evaluate<string>('document.activeElement.id || document.activeElement.type')),
      );
    }
    expect(order.slice(0, 3)).toEqual(['Skip to the content', 'project', 'Sign out']);
    expect(order.slice(3, 8)).toEqual(['Functions', 'API usage', 'Logs', 'errors.hourly', 'paths.top']);
    expect(order[8]).toBe('The last day');
    expect(order.join()).toMatch(/Refresh,Succeeded.*,Errors/);
    await press('Shift+Tab');
    await page.getByRole('link', { name: 'Skip to the content' }).focus();
    await press('Enter', 'Tab');
    expect(await focused()).toBe('The last day');
  });

  test('chooses an interval by the arrow keys', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=functions&project=busy-market&interval=1hr');
    await page.getByRole('radio', { name: 'The last hour' }).focus();
    await press('ArrowRight');
    await page.waitForURL(/interval=1day/);
    expect(await focused()).toBe('The last day');
  });

  test('walks along a chart and hears each bucket; Escape leaves', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=usage&project=busy-market&interval=daily');
    const chart = page.getByRole('img', { name: /Requests by service area/ });
    await chart.focus();
    await press('End', 'ArrowLeft');
    const { rows } = await askApi('usage.api-counts', { project: 'busy-market', interval: 'daily' });
    const row = rows.at(-2) ?? {};
    const rest = Number(row['total_rest_requests']).toLocaleString('en-GB');
    const spoken = page.locator('.chart [aria-live]');
    expect(await spoken.textContent()).toContain(`REST ${rest}`);
    const utc = String(row['timestamp']).replace('T', ' ').replace('Z', ' UTC');
    await page.locator('.tooltip').getByText(utc).waitFor();
    await visitor.screenshot('tooltip-light');
    await press('Escape');
    expect(await page.locator('.tooltip').isVisible()).toBe(false);
  });

  test('hides and shows a series of a chart', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=usage&project=busy-market&interval=daily');
    const entry = page.getByRole('button', { name: /^Auth/ });
    await entry.focus();
    await press('Enter');
    expect(await entry.getAttribute('aria-pressed')).toBe('false');
    await page.getByRole('img', { name: /Requests/ }).focus();
    await press('End');
    expect(await page.locator('.tooltip').textContent()).not.toContain('Auth');
    await entry.focus();
    await press(' ');
    expect(await entry.getAttribute('aria-pressed')).toBe('true');
  });

  test('opens a log record, copies it as JSON, and goes on to the next', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=logs&project=quiet-garden&tier=PRO');
    const openers = page.locator('.log-opener');
    await openers.first().focus();
    await press('ArrowDown', 'Enter');
    expect(await openers.nth(1).getAttribute('aria-expanded')).toBe('true');
    const details = page.locator('.details');
    await details.getByText('user_agent').waitFor();
    await press('Tab');
    expect(await focused()).toBe('Copy as JSON');
    await press('Enter');
    await details.getByText('Copied').waitFor();
    const copied: unknown = JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'));
    const { rows } = await askApi('logs.all', { project: 'quiet-garden', project_tier: 'PRO' });
    expect(copied).toEqual(rows[1]);

    await press('Shift+Tab', 'Escape');
    expect(await details.isVisible()).toBe(false);
    await press('End');
    expect(await openers.last().evaluate(element => element === element.ownerDocument.activeElement)).toBe(
      true,
    );
    await press('Home', 'ArrowUp');
    expect(await openers.first().evaluate(element => element === element.ownerDocument.activeElement)).toBe(
      true,
    );
  });

  test('folds the tree of metadata', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=logs&project=quiet-garden&tier=PRO');
    await page.locator('.log-opener').first().click();
    const branch = page.locator('.tree summary').first();
    await branch.focus();
    await press('Enter');
    expect(await page.locator('.tree').getByText('user_agent').isVisible()).toBe(false);
    await press('Enter');
    expect(await page.locator('.tree').getByText('user_agent').isVisible()).toBe(true);
  });

  test('filters the records at hand', async () => {
    const { page } = visitor;
    await visitor.goTo('?view=logs&project=stormy-harbor');
    await page.getByLabel('Filter these records').fill('websocket');
    const { rows } = await askApi('logs.all', { project: 'stormy-harbor' });
    const matching = rows.filter(row => String(row['event_message']).includes('websocket'));
    await page.getByText(`${matching.length} of 100 records`).waitFor();
    expect(await page.locator('.log-line:visible').count()).toBe(matching.length);
  });
});
