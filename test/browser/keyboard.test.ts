// All functions of the console can be used with the keyboard alone.
import { describe, expect, inject, test } from 'vitest';
import { queryApi, useTab } from './support/tab.ts';

const { tab } = useTab({ token: inject('token'), permissions: ['clipboard-read', 'clipboard-write'] });

const press = async (...keys: string[]) => {
  for (const key of keys) await tab.page.keyboard.press(key);
};
const readFocused = () =>
  tab.page.evaluate<string>(
    'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent',
  );

describe('keyboard', () => {
  test('Tab reaches every control in reading order, and the skip link leads to the content', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=busy-market');
    await page.getByRole('img', { name: /Invocations/ }).waitFor();
    const order: string[] = [];
    for (let i = 0; i < 17; i++) {
      await press('Tab');
      order.push(
        (await readFocused()) ||
          (await page.evaluate<string>('document.activeElement.id || document.activeElement.type')),
      );
    }
    expect(order.slice(0, 5)).toEqual([
      'Skip to content',
      'project',
      'Theme: system',
      'Keyboard shortcuts and search',
      'Sign out',
    ]);
    const custom = ['errors.hourly', 'paths.top', 'records.paged'];
    expect(order.slice(5, 11)).toEqual(['Functions', 'API usage', 'Logs', ...custom]);
    expect(order[11]).toBe('The last hour');
    expect(order.join()).toMatch(/Refresh,Succeeded.*,Errors/);
    await press('Shift+Tab');
    await page.getByRole('link', { name: 'Skip to content' }).focus();
    tab.apiRequests.length = 0;
    await press('Enter', 'Tab');
    expect(await page.getByLabel('Function id').evaluate(field => field.matches(':focus'))).toBe(true);
    expect(tab.apiRequests).toEqual([]);
  });

  test('the arrow keys choose a time range', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=busy-market&range=1hr');
    await page.getByRole('radio', { name: 'The last hour' }).focus();
    await press('ArrowRight');
    await page.waitForURL(/range=1day/);
    expect(await readFocused()).toBe('The last day');
  });

  test('the arrow keys move along a chart and announce each bucket, Escape hides the tooltip, Enter and Space toggle a series', async () => {
    const { page } = tab;
    await tab.goTo('?view=usage&project=busy-market&range=7day');
    const chart = page.getByRole('img', { name: /Requests by service area/ });
    await chart.focus();
    await press('End', 'ArrowLeft');
    const { rows } = await queryApi('usage.api-counts', { project: 'busy-market', interval: 'daily' });
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 'yyyy-mm-dd'.length);
    const row = rows.find(({ timestamp }) => String(timestamp).startsWith(yesterday)) ?? {};
    const rest = Number(row['total_rest_requests']).toLocaleString('en-GB');
    const announcement = page.locator('.chart [aria-live]');
    expect(await announcement.textContent()).toContain(`REST ${rest}`);
    const utc = String(row['timestamp']).replace('T', ' ').replace('Z', ' UTC');
    await page.locator('.tooltip').getByText(utc).waitFor();
    await tab.screenshot('tooltip-light');
    await press('Escape');
    expect(await page.locator('.tooltip').isVisible()).toBe(false);

    const entry = page.getByRole('button', { name: /^Auth/ });
    await entry.focus();
    await press('Enter');
    expect(await entry.getAttribute('aria-pressed')).toBe('false');
    await chart.focus();
    await press('End');
    expect(await page.locator('.tooltip').textContent()).not.toContain('Auth');
    await entry.focus();
    await press(' ');
    expect(await entry.getAttribute('aria-pressed')).toBe('true');
  });

  test('a log record and its branches can be opened and closed, copied as JSON, and the arrow keys move between records', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=quiet-garden&range=all');
    const toggles = page.locator('.log-toggle');
    await toggles.first().focus();
    await press('ArrowDown', 'Enter');
    expect(await toggles.nth(1).getAttribute('aria-expanded')).toBe('true');
    const details = page.locator('.details');
    await details.getByText('user_agent').waitFor();
    await press('Tab', 'Tab');
    expect(await readFocused()).toBe('JSON');
    await press('Tab');
    expect(await readFocused()).toBe('Copy as JSON');
    await press('Enter');
    await details.getByText('Copied').waitFor();
    const copied: unknown = JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'));
    const { rows } = await queryApi('logs.all', { project: 'quiet-garden', project_tier: 'PRO' });
    expect(copied).toEqual(rows[1]);

    const branch = details.locator('.tree summary').first();
    await branch.focus();
    await press('Enter');
    expect(await details.getByText('user_agent').isVisible()).toBe(false);
    await press('Enter');
    expect(await details.getByText('user_agent').isVisible()).toBe(true);

    await toggles.nth(1).focus();
    await press('Escape');
    expect(await details.isVisible()).toBe(false);
    await press('End');
    expect(await toggles.last().evaluate(element => element === element.ownerDocument.activeElement)).toBe(
      true,
    );
    await press('Home', 'ArrowUp');
    expect(await toggles.first().evaluate(element => element === element.ownerDocument.activeElement)).toBe(
      true,
    );
  });

  test('the filter hides loaded records that do not contain the text', async () => {
    const { page } = tab;
    await tab.goTo('?view=logs&project=stormy-harbor&range=all');
    await page.getByLabel('Filter loaded records').fill('websocket');
    const { rows } = await queryApi('logs.all', { project: 'stormy-harbor' });
    const matching = rows.filter(row => String(row['event_message']).includes('websocket'));
    await page.getByText(`${matching.length} of 100 records`).waitFor();
    expect(await page.locator('.log-row:visible').count()).toBe(matching.length);
  });
});
