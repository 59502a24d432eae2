import { afterEach, describe, expect, inject, test } from 'vitest';
import { type Visitor, visit } from './support/visitor.ts';

let visitor: Visitor;
afterEach(() => visitor.leave());

const LOGS = '?view=logs&project=quiet-garden';

/** Everything that a browser keeps, besides the tab's own session storage. */
const keptElsewhere = () =>
  visitor.page.evaluate<string>('JSON.stringify({ ...localStorage }) + document.cookie + location.href');

const enter = async (token: string) => {
  await visitor.page.getByLabel('API token').fill(token);
  await visitor.page.getByRole('button', { name: 'Continue' }).click();
};

describe('the token', () => {
  test('is asked for once, kept in this tab alone, and sent as a header alone', async () => {
    visitor = await visit();
    const { page, calls } = visitor;
    await visitor.goTo(LOGS);
    expect(calls).toEqual([]);
    await enter(inject('token'));
    await page.locator('.log-line').first().waitFor();
    expect(calls.length).toBeGreaterThan(1);
    for (const { url, headers } of calls) {
      expect(headers['x-api-key']).toBe(inject('token'));
      expect(url.href).not.toContain(inject('token'));
    }
    expect(await keptElsewhere()).not.toContain(inject('token'));
    expect(await page.evaluate('Object.values(sessionStorage)')).toContain(inject('token'));
    await page.reload();
    await page.locator('.log-line').first().waitFor();
  });

  test('that is wrong is refused in the API’s words, and asked for again', async () => {
    visitor = await visit({ expectedStatuses: [401] });
    const { page } = visitor;
    await visitor.goTo(LOGS);
    await enter('dnd_wrong');
    const refusal = await fetch(`${inject('url')}/api/endpoints`, { headers: { 'X-API-KEY': 'dnd_wrong' } });
    const { error } = (await refusal.json()) as { error: { message: string } };
    expect(await page.getByRole('alert').textContent()).toBe(error.message);
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await enter(inject('token'));
    await page.locator('.log-line').first().waitFor();
  });

  test('that no header can carry is refused, and asked for again', async () => {
    visitor = await visit();
    const { page } = visitor;
    await visitor.goTo(LOGS);
    await enter('dnd_“quoted”');
    await page.getByRole('alert').getByText('this cannot be a token').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await enter(inject('token'));
    await page.locator('.log-line').first().waitFor();
  });

  test('that no longer opens the door is asked for again, and the place stays', async () => {
    visitor = await visit({ token: inject('token'), expectedStatuses: [401] });
    const { page } = visitor;
    await visitor.goTo(LOGS);
    await page.locator('.log-line').first().waitFor();
    await page.evaluate("sessionStorage.setItem('dendro.token', 'dnd_revoked')");
    await page.getByRole('button', { name: 'Refresh' }).click();
    await enter(inject('token'));
    await page.locator('.log-line').first().waitFor();
    expect(page.url()).toContain('view=logs&project=quiet-garden');
  });

  test('behind #token= is read once and taken out of the address', async () => {
    visitor = await visit();
    const { page } = visitor;
    await visitor.goTo(`${LOGS}#token=${inject('token')}`);
    await page.locator('.log-line').first().waitFor();
    expect(await keptElsewhere()).not.toContain(inject('token'));
    expect(page.url()).toContain('project=quiet-garden');
    await page.goBack();
    expect(page.url()).not.toContain('token');
  });

  test('behind #token= serves a console that is open already, too', async () => {
    visitor = await visit();
    const { page } = visitor;
    await visitor.goTo(LOGS);
    await page.getByLabel('API token').waitFor();
    await page.evaluate(`location.hash = 'token=${inject('token')}'`);
    await page.locator('.log-line').first().waitFor();
    expect(page.url()).not.toContain('token');
  });

  test('is forgotten at Sign out', async () => {
    visitor = await visit();
    const { page } = visitor;
    await visitor.goTo(`${LOGS}#token=${inject('token')}`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API token').waitFor();
    expect(await page.evaluate("sessionStorage.getItem('dendro.token')")).toBeNull();
  });

  test('of one endpoint opens one view', async () => {
    visitor = await visit({ token: inject('logsToken') });
    const { page } = visitor;
    await visitor.goTo('?view=functions&project=quiet-garden');
    await page.locator('.log-line').first().waitFor();
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual(['Logs']);
  });
});
