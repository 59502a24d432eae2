// The frame of the console: theme, keyboard shortcuts, project field, width, empty results and sign-in.
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { checkAppearance, findAccessibilityViolations } from './support/accessibility.ts';
import { openTab, type Tab } from './support/tab.ts';

let tab: Tab;
beforeAll(async () => {
  tab = await openTab({ token: inject('token') });
});
afterAll(() => tab.close());

const USAGE = '?view=usage&project=busy-market&range=7day';
const readBackground = () => tab.page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
const DARK = 'rgb(14, 18, 16)';
const LIGHT = 'rgb(246, 247, 245)';

describe('theme', () => {
  test('the theme button chooses light, dark or the mode of the system, and a reload paints the choice at once', async () => {
    const { page } = tab;
    await tab.goTo(USAGE);
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    await page.getByRole('button', { name: 'Theme: system' }).click();
    expect(await readBackground()).toBe(LIGHT);
    const readCanvas = () => page.evaluate<string>("document.querySelector('canvas').toDataURL()");
    const light = await readCanvas();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    expect(await readBackground()).toBe(DARK);
    expect(await readCanvas()).not.toBe(light);

    // The module with the console never arrives, so only the script in the head can set the theme.
    await page.route('**/assets/index-*.js', route => route.abort());
    await page.reload();
    expect(await readBackground()).toBe(DARK);
    await page.unrouteAll();
    tab.unexpectedErrors.splice(0);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: dark' }).click();
    expect(await readBackground()).toBe(LIGHT);
    expect(await page.evaluate('localStorage.length')).toBe(0);
  });
});

describe('keyboard shortcuts', () => {
  test('? opens an accessible list of the shortcuts, and Escape closes it', async () => {
    const { page } = tab;
    await tab.goTo(USAGE);
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await help.getByText('Refresh the result, without the cache').waitFor();
    await checkAppearance(tab, 'help');
    await page.keyboard.press('1'); // shortcuts are off while the dialog is open
    expect(page.url()).toContain('view=usage');
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
  });

  test('shortcuts open views, focus the project field and refresh, but not while the user types', async () => {
    const { page, apiRequests } = tab;
    await tab.goTo(USAGE);
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    await page.keyboard.press('r');
    await expect.poll(() => apiRequests.at(-1)?.headers['cache-control']).toBe('no-cache');
    await page.keyboard.press('1');
    await page.waitForURL(/view=functions/);
    await page.keyboard.press('p');
    await page.keyboard.type('3tr?');
    expect(await page.getByLabel('Project').inputValue()).toContain('3tr?');
    expect(page.url()).toContain('view=functions');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await tab.goTo('?view=logs&project=busy-market&range=all');
    await page.locator('.log-row').first().waitFor();
    await page.keyboard.press('r');
    await expect.poll(() => apiRequests.at(-1)?.headers['cache-control']).toBe('no-cache');
  });
});

test('the project field suggests the recent projects, and the keyboard chooses one', async () => {
  const { page } = tab;
  await tab.goTo('?view=functions&project=busy-market');
  await page.getByRole('navigation').waitFor();
  await tab.goTo('?view=functions&project=slow-river');
  const field = page.getByLabel('Project');
  await field.click();
  const recent = page.getByRole('group', { name: 'Recent' }).getByRole('option');
  await recent.first().waitFor();
  expect(await recent.locator('.mono').allTextContents()).toEqual(['slow-river', 'busy-market']);
  expect(await findAccessibilityViolations(page)).toEqual([]);
  await field.fill('busy');
  await expect.poll(() => recent.count()).toBe(1);
  await page.keyboard.press('ArrowDown');
  expect(await recent.first().getAttribute('aria-selected')).toBe('true');
  await page.keyboard.press('Enter');
  await page.waitForURL(/project=busy-market/);
  expect(await page.getByRole('listbox').isVisible()).toBe(false);
});

test('Escape leaves the project field and restores its text', async () => {
  const { page } = tab;
  await tab.goTo('?view=functions&project=busy-market');
  await page.getByRole('navigation').waitFor();
  await page.keyboard.press('p');
  await page.keyboard.type('x');
  const field = page.getByLabel('Project');
  for (let i = 0; i < 2 && (await field.evaluate(input => input.matches(':focus'))); i++)
    await page.keyboard.press('Escape'); // the first one may close the suggestions
  expect(await field.inputValue()).toBe('busy-market');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('Escape');
});

test('the content uses the full width of a wide screen', async () => {
  const { page } = tab;
  await page.setViewportSize({ width: 2560, height: 1200 });
  await tab.goTo('?view=functions&project=stormy-harbor&range=1hr');
  await page.getByRole('img', { name: /Invocations/ }).waitFor();
  await tab.screenshot('functions-wide');
  const edges = await page.evaluate<number[]>(
    "[...document.querySelectorAll('.chart')].map(chart => chart.getBoundingClientRect().right)",
  );
  expect(Math.max(...edges)).toBeGreaterThan(2500);
  await tab.goTo(USAGE);
  await page.getByRole('img', { name: /Requests/ }).waitFor();
  await tab.screenshot('usage-wide');
  expect(await page.evaluate("document.querySelector('.chart').clientWidth")).toBeGreaterThan(2400);
});

test('a time range without records offers all records', async () => {
  const { page } = tab;
  await tab.goTo('?view=functions&project=nobody&range=5min');
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.waitForURL(/range=all/);
  await page.getByRole('heading', { name: /in this time range/ }).waitFor();
  expect(await page.getByRole('button', { name: 'Show all' }).count()).toBe(0);
});

test('the sign-in page says where tokens come from', async () => {
  const { page } = tab;
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Where do I get a token?').click();
  await page.getByText('dendro token create --name me --scope query').waitFor();
  await checkAppearance(tab, 'sign-in-help');
});
