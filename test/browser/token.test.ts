// How the console receives, keeps and sends the token.
import { afterEach, describe, expect, inject, test } from 'vitest';
import { openTab, type Tab } from './support/tab.ts';

let tab: Tab;
afterEach(() => tab.close());

const LOGS = '?view=logs&project=quiet-garden&range=all';

/** Local storage, cookies and URL: everything the browser keeps except the session storage of the tab. */
const readOtherStorage = () =>
  tab.page.evaluate<string>('JSON.stringify({ ...localStorage }) + document.cookie + location.href');

const signIn = async (token: string) => {
  await tab.page.getByLabel('API token').fill(token);
  await tab.page.getByRole('button', { name: 'Sign in' }).click();
};

describe('token', () => {
  test('the token is kept in the session storage of the tab only, and sent in a header only', async () => {
    tab = await openTab();
    const { page, apiRequests } = tab;
    await tab.goTo(LOGS);
    expect(apiRequests).toEqual([]);
    await signIn(inject('token'));
    await page.locator('.log-row').first().waitFor();
    expect(apiRequests.length).toBeGreaterThan(1);
    for (const { url, headers } of apiRequests) {
      expect(headers['x-api-key']).toBe(inject('token'));
      expect(url.href).not.toContain(inject('token'));
    }
    expect(await readOtherStorage()).not.toContain(inject('token'));
    expect(await page.evaluate('Object.values(sessionStorage)')).toContain(inject('token'));
    await page.reload();
    await page.locator('.log-row').first().waitFor();
  });

  test('a user who keeps signed in is signed in in other tabs, until sign-out', async () => {
    tab = await openTab();
    const { page } = tab;
    await tab.goTo(LOGS);
    await page.getByLabel('Keep me signed in on this browser').check();
    await page.getByText('this browser stores it until you sign out').waitFor();
    await signIn(inject('token'));
    await page.locator('.log-row').first().waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.locator('.log-row').first().waitFor();
    await other.getByRole('button', { name: 'Sign out' }).click();
    await other.getByLabel('API token').waitFor();
    expect(await readOtherStorage()).not.toContain(inject('token'));
    await page.reload();
    await page.getByLabel('API token').waitFor();
  });

  test('a link that is opened without a token shows its target after sign-in', async () => {
    tab = await openTab();
    await tab.goTo('?view=usage&project=busy-market&range=7day');
    await signIn(inject('token'));
    await tab.page.getByRole('img', { name: /Requests/ }).waitFor();
    expect(tab.page.url()).toContain('?view=usage&project=busy-market&range=7day');
  });

  test('a token that is unknown or that a header cannot contain is rejected with a reason, and another can be entered', async () => {
    tab = await openTab({ expectedStatuses: [401] });
    const { page } = tab;
    await tab.goTo(LOGS);
    await signIn('dnd_“quoted”');
    await page.getByRole('alert').getByText('invalid token: only printable ASCII characters').waitFor();
    await signIn('dnd_wrong');
    const response = await fetch(`${inject('url')}/api/endpoints`, { headers: { 'X-API-KEY': 'dnd_wrong' } });
    const { error } = (await response.json()) as { error: { message: string } };
    await page.getByRole('alert').getByText(error.message, { exact: true }).waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await signIn(inject('token'));
    await page.locator('.log-row').first().waitFor();
  });

  test('the token is requested again after it was revoked, and the URL stays the same', async () => {
    tab = await openTab({ token: inject('token'), expectedStatuses: [401] });
    const { page } = tab;
    await tab.goTo(LOGS);
    await page.locator('.log-row').first().waitFor();
    await page.evaluate("sessionStorage.setItem('dendro.token', 'dnd_revoked')");
    await page.getByRole('button', { name: 'Refresh' }).click();
    await signIn(inject('token'));
    await page.locator('.log-row').first().waitFor();
    expect(page.url()).toContain('view=logs&project=quiet-garden');
  });

  test('a token in the URL fragment #token= is saved and removed from the URL, also on an open sign-in page', async () => {
    tab = await openTab();
    const { page } = tab;
    await tab.goTo(`${LOGS}#token=${inject('token')}`);
    await page.locator('.log-row').first().waitFor();
    expect(await readOtherStorage()).not.toContain(inject('token'));
    expect(page.url()).toContain('project=quiet-garden');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API token').waitFor();
    expect(await page.evaluate("sessionStorage.getItem('dendro.token')")).toBeNull();
    await page.evaluate(`location.hash = 'token=${inject('token')}'`);
    await page.locator('.log-row').first().waitFor();
    expect(page.url()).not.toContain('token');
    await page.goBack();
    expect(page.url()).not.toContain('token');
  });

  test('a link with another token asks before it replaces the token of the user, who can keep it', async () => {
    tab = await openTab({ token: inject('token') });
    const { page } = tab;
    await tab.goTo(`${LOGS}#token=dnd_of-someone-else`);
    await page.getByRole('heading', { name: 'Use the token of this link?' }).waitFor();
    await tab.screenshot('token-choice');
    expect(await page.evaluate("sessionStorage.getItem('dendro.token')")).toBe(inject('token'));
    expect(page.url()).not.toContain('token');
    expect(tab.apiRequests).toEqual([]);
    await page.keyboard.press('Enter'); // keeping the token has the focus
    await page.locator('.log-row').first().waitFor();
    for (const { headers } of tab.apiRequests) expect(headers['x-api-key']).toBe(inject('token'));
  });

  test('a link with another token in an open console asks too, and the user can use it', async () => {
    tab = await openTab({ token: inject('logsToken') });
    const { page } = tab;
    await tab.goTo(LOGS);
    await page.locator('.log-row').first().waitFor();
    await page.evaluate(`location.hash = 'token=${inject('token')}'`);
    await page.getByRole('button', { name: 'Use the token of the link' }).click();
    await page.locator('.log-row').first().waitFor();
    expect(await page.evaluate("sessionStorage.getItem('dendro.token')")).toBe(inject('token'));
    expect(await page.getByRole('navigation').getByRole('link').count()).toBeGreaterThan(1);
  });

  test('a token with access to one endpoint shows one view', async () => {
    tab = await openTab({ token: inject('logsToken') });
    const { page } = tab;
    await tab.goTo('?view=functions&project=quiet-garden');
    await page.locator('.log-row').first().waitFor();
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual(['Logs']);
  });

  test('a token with access to logs.histogram but not to logs.search shows a view of logs.histogram', async () => {
    tab = await openTab({ token: inject('partialPackToken') });
    const { page } = tab;
    await tab.goTo('?view=endpoint.logs.histogram&project=search');
    await page.getByRole('table', { name: 'Rows of logs.histogram' }).waitFor();
    const links = page.getByRole('navigation').getByRole('link');
    expect(await links.allTextContents()).toEqual(['Logs', 'logs.histogram']);
  });
});
