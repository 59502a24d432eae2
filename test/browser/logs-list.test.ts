// The log list: its density, columns, keys and skip link, and the tabs of an open record.
import { execFileSync } from 'node:child_process';
import { expect, inject, test } from 'vitest';
import { findAccessibilityViolations } from './support/accessibility.ts';
import { queryApi, useTab } from './support/tab.ts';

const { tab, rows, settings, button, open } = useTab({
  token: inject('exploreToken'),
  permissions: ['clipboard-read', 'clipboard-write'],
});

const SEARCH = '?view=logs&project=search&kind=edge&range=all';
const TRACED = '?view=logs&project=traced&kind=all&range=all';
const headings = async () => (await tab.page.locator('.log-table th').allTextContents()).slice(1);

test('at least 15 rows are visible in a window of 900 px', async () => {
  await open(SEARCH);
  await tab.page.locator('.histogram [data-series]').first().waitFor();
  await tab.page.locator('.facet-value').first().waitFor();
  await tab.screenshot('logs-rows');
  const visible = await rows().evaluateAll(
    elements => elements.filter(row => row.getBoundingClientRect().bottom <= 900).length,
  );
  expect(visible).toBeGreaterThanOrEqual(15);
});

test('the columns can be chosen, also any field of the metadata, and stand in the link', async () => {
  const { page } = tab;
  await open(SEARCH);
  expect(await headings()).toEqual(['Status', 'Method', 'Path', 'Message']);
  await page.getByText('Columns', { exact: true }).click();
  await page.locator('.menu-body').getByLabel('Method').uncheck();
  await page.waitForURL(/columns=status%2Cpath/);
  await expect.poll(headings).toEqual(['Status', 'Path', 'Message']);
  await page.locator('.menu-body').getByLabel('Add a field').fill('headers.note');
  await page.getByRole('option', { name: 'request.headers.note' }).click();
  await expect.poll(headings).toEqual(['Status', 'Path', 'request.headers.note', 'Message']);
  expect(await findAccessibilityViolations(page)).toEqual([]);
  await page.reload();
  await rows().first().waitFor();
  expect(await rows().nth(1).locator('td').nth(3).textContent()).toBe('none');
  await page.getByText('Columns', { exact: true }).click();
  await button('Columns of the log kind').click();
  await expect.poll(headings).toEqual(['Status', 'Method', 'Path', 'Message']);
  expect(settings()['columns']).toBeUndefined();
});

test('long messages wrap if the user wants it, also after a reload', async () => {
  const { page } = tab;
  await open('?view=logs&project=search&kind=postgres&range=all');
  const height = () =>
    rows()
      .first()
      .evaluate(row => row.getBoundingClientRect().height);
  const before = await height();
  await button('Wrap').click();
  expect(await height()).toBeGreaterThan(before);
  await page.reload();
  await rows().first().waitFor();
  expect(await button('Wrap').getAttribute('aria-pressed')).toBe('true');
  await button('Wrap').click();
  expect(await height()).toBe(before);
});

test('j and k move between records, Enter opens one, and the skip link leads to the list', async () => {
  const { page } = tab;
  await open(SEARCH);
  const focused = () =>
    page.evaluate<number>("[...document.querySelectorAll('.log-toggle')].indexOf(document.activeElement)");
  for (const [key, index] of [
    ['j', 0],
    ['j', 1],
    ['j', 2],
    ['k', 1],
  ] as const) {
    await page.keyboard.press(key);
    expect(await focused()).toBe(index);
  }
  await page.keyboard.press('Enter');
  await page.locator('.details').waitFor();
  await page.getByRole('link', { name: 'Skip to the records' }).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  expect(await focused()).toBe(0);
});

test('surroundings that arrive late do not replace another tab of the record', async () => {
  const { page } = tab;
  await open('?view=logs&project=traced&kind=edge&range=all');
  await page.locator('.log-toggle').first().click();
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  await page.route('**/query/logs.record?**', async route => {
    await released;
    await route.continue();
  });
  const response = page.waitForResponse(/logs\.record/);
  await button('Surrounding records').click();
  await button('JSON').click();
  release();
  await (await response).finished();
  await page.evaluate('new Promise(resolve => setTimeout(resolve, 100))');
  expect(await page.locator('.details-json').isVisible()).toBe(true);
});

test('an open record has its fields, its JSON and its surroundings of all kinds', async () => {
  const { page } = tab;
  await open('?view=logs&project=traced&kind=edge&range=all');
  await page.locator('.log-toggle').first().click();
  await page.locator('.details .tree').waitFor();
  await button('JSON').click();
  const { rows: expected } = await queryApi('logs.search', { project: 'traced', kind: 'edge' });
  expect(JSON.parse((await page.locator('.details-json').textContent()) ?? '')).toEqual(expected[0]);
  await button('Surrounding records').click();
  const surroundings = page.locator('.surroundings .log-row');
  await expect.poll(() => surroundings.count()).toBe(9);
  expect(await page.locator('.surroundings .log-row[aria-current] .log-message').textContent()).toBe(
    'edge record',
  );
  expect(await findAccessibilityViolations(page)).toEqual([]);
  await button('Fields').click();
  await page.locator('.details .tree').waitFor();
});

test('a record can be copied as curl, without the token', async () => {
  const { page } = tab;
  await open(TRACED);
  await page.locator('.log-toggle').first().click();
  await page.locator('.details').getByRole('button', { name: 'Copy as curl' }).click();
  await page.getByText('Copied').waitFor();
  const command = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(command).not.toContain(inject('exploreToken'));
  const output = execFileSync('sh', ['-c', `${command} --silent --noproxy '*'`], {
    env: { ...process.env, DENDRO_TOKEN: inject('exploreToken') },
    encoding: 'utf8',
  });
  const { result } = JSON.parse(output) as { result: { id: string }[] };
  expect(result.map(({ id }) => id)).toEqual(['traced-edge']);
});
