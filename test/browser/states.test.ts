// What the console shows if a result is empty or a request fails, and how it behaves while requests are in flight.
import { afterEach, describe, expect, inject, test } from 'vitest';
import { openTab, PHONE, queryApi, type Tab } from './support/tab.ts';

let tab: Tab;
afterEach(() => tab.close());

describe('empty result', () => {
  test('an empty result shows how many records remain after each condition, and what may be wrong', async () => {
    tab = await openTab({ token: inject('token') });
    const { page } = tab;
    await tab.goTo('?view=functions&project=nobody&range=1hr&function=hello');
    await page
      .getByRole('heading', { name: 'No invocations of function hello in project nobody in the last hour' })
      .waitFor();
    await page.getByText('Check the spelling of its reference').waitFor();
    await page.getByText('The function id must match exactly').waitFor();
    await page.getByText('0 rows: the store has no function_edge records of this project').waitFor();
    await page.getByText('after the condition project: 0 records').waitFor();
    await tab.goTo('?view=functions&project=busy-market&range=1hr&function=no-such-function');
    await page.getByText(/^0 rows: of [\d,]+ records of this project in the time window, none/).waitFor();
    await page.getByText('after the condition function: 0 records').waitFor();
    expect(await page.getByText('Check the spelling').count()).toBe(0);
  });

  test.each<[string, Record<string, string>, string, RegExp]>([
    [
      'how old the newest record is',
      { 'Dendro-Data-Through': new Date(Date.now() - 86_400_000).toISOString() },
      'usage',
      /The newest record .* is from .* 24 h before the query ran/,
    ],
    ['that the log is empty', {}, 'logs', /The edge request log has no records that your token can read/],
  ])('an empty result says %s', async (_, headers, view, expected) => {
    tab = await openTab({ token: inject('token') });
    await tab.page.route('**/api/endpoints/query/**', route =>
      route.fulfill({ body: '{"result":[]}', contentType: 'application/json', headers }),
    );
    await tab.goTo(`?view=${view}&project=busy-market`);
    await tab.page.getByText(expected).waitFor();
  });

  test('an empty result says that the range starts before the retention of the tier', async () => {
    tab = await openTab({ token: inject('token') });
    const days = (count: number) => new Date(Date.now() - count * 86_400_000).toISOString();
    const range = new URLSearchParams({ range: 'custom', start: days(5), end: days(4) });
    await tab.goTo(`?view=logs&project=busy-market&tier=FREE&${range}`);
    await tab.page.getByText('starts before the retention of the tier').waitFor();
  });
});

describe('error', () => {
  test('an invalid project shows the message of the API and marks the project field', async () => {
    tab = await openTab({ token: inject('token'), expectedStatuses: [400] });
    const { page } = tab;
    await tab.goTo('?view=usage&project=(&range=1hr');
    const { error } = await queryApi('usage.api-counts', { project: '(', interval: 'minutely' });
    expect(await page.getByRole('alert').locator('p').first().textContent()).toBe(error.message);
    expect(await page.getByLabel('Project').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Project').fill('busy-market');
    await page.getByLabel('Project').press('Enter');
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    expect(await page.getByLabel('Project').getAttribute('aria-invalid')).toBeNull();
  });

  test('an invalid parameter of a custom endpoint shows the message of the API and marks its field', async () => {
    tab = await openTab({ token: inject('token'), expectedStatuses: [400] });
    const { page } = tab;
    await tab.goTo('?view=endpoint.errors.hourly&project=busy-market&p.after=yesterday');
    const { error } = await queryApi('errors.hourly', { project: 'busy-market', after: 'yesterday' });
    await page.getByRole('alert').getByText(error.message).waitFor();
    expect(await page.getByLabel('after', { exact: true }).getAttribute('aria-invalid')).toBe('true');
  });

  test.each([
    ['the server', 503, '{"error":{"code":"unavailable","message":"still starting"}}', 'still starting'],
    ['a proxy', 502, '<html>bad gateway</html>', 'the server returned status 502'],
  ])(
    'an error of %s while the server starts is shown and retried, and the page says so',
    async (_, status, body, message) => {
      tab = await openTab({ token: inject('token'), expectedStatuses: [status] });
      const { page } = tab;
      const headers = { 'Retry-After': '1' };
      await page.route('**/api/endpoints', route => route.fulfill({ status, body, headers }));
      await tab.goTo('?view=usage&project=busy-market');
      await expect.poll(() => tab.apiRequests.length).toBeGreaterThan(1);
      await page.getByRole('alert').getByText(message).waitFor();
      await page.getByRole('alert').getByText('Retrying automatically').waitFor();
      await page.unrouteAll();
      await page.getByRole('img', { name: /Requests/ }).waitFor();
    },
  );

  test('an error of the list of projects is shown without advice about packs, and retried', async () => {
    tab = await openTab({ token: inject('exploreToken'), expectedStatuses: [503] });
    const { page } = tab;
    const body = JSON.stringify({ error: { code: 'unavailable', message: 'the queue is full' } });
    await page.route('**/query/projects.active?**', route =>
      route.fulfill({ status: 503, body, headers: { 'Retry-After': '2' } }),
    );
    await tab.goTo('?view=functions');
    await page.getByRole('alert').getByText('the queue is full').waitFor();
    expect(await page.getByText('--packs none').count()).toBe(0);
    await page.unrouteAll();
    await page.locator('.project-list a').first().waitFor();
  });

  test.each([
    ['is not JSON', '<html>a proxy</html>'],
    ['is truncated', '{"result":[{"timestamp":"2026-11-14T'],
    ['has no result', '{}'],
  ])('an error because the response %s is shown and retried', async (_, body) => {
    tab = await openTab({ token: inject('token') });
    const { page } = tab;
    const paths = ['**/api/endpoints', '**/api/endpoints/query/**'];
    for (const path of paths) await page.route(path, route => route.fulfill({ body }));
    await page.clock.install();
    await tab.goTo('?view=usage&project=busy-market');
    for (const [index, path] of paths.entries()) {
      await expect.poll(() => new Set(tab.apiRequests.map(({ url }) => url.pathname)).size).toBe(index + 1);
      await page.getByRole('alert').getByText('cannot read the response').waitFor();
      await page.unroute(path);
      await page.clock.runFor(5_000);
    }
    await page.getByRole('img', { name: /Requests/ }).waitFor();
  });

  test('an error because the server is unreachable is shown and retried', async () => {
    tab = await openTab({ token: inject('token') });
    const { page, unexpectedErrors } = tab;
    await tab.goTo('?view=usage&project=busy-market');
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    await page.context().setOffline(true);
    await page.getByRole('radio', { name: 'The last 7 days' }).check();
    await page.getByRole('alert').getByText('cannot reach').waitFor();
    await page.context().setOffline(false);
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    for (const error of unexpectedErrors.splice(0)) expect(error).toContain('ERR_INTERNET_DISCONNECTED');
  });
});

test('a query that takes longer than 2 s can be cancelled and run again', async () => {
  tab = await openTab({ token: inject('token') });
  const { page } = tab;
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  let isHeld = true;
  await page.route('**/query/usage.api-counts?**', route => (isHeld ? undefined : route.continue()));
  await tab.goTo('?view=usage&project=busy-market');
  await page.getByText('Loading…').waitFor();
  expect(await page.getByRole('button', { name: 'Cancel' }).isVisible()).toBe(false);
  await page.clock.runFor(2100);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('heading', { name: 'Cancelled' }).waitFor();
  isHeld = false;
  await page.clock.resume();
  await page.getByRole('button', { name: 'Run again' }).click();
  await page.getByRole('img', { name: /Requests/ }).waitFor();
  expect(await page.getByRole('button', { name: 'Cancel' }).isVisible()).toBe(false);
});

test('older records that arrive after the project changed are not added to the list', async () => {
  tab = await openTab({ token: inject('token') });
  const { page } = tab;
  await tab.goTo('?view=logs&project=busy-market&range=all');
  await page.locator('.log-row').first().waitFor();
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  await page.route(/iso_timestamp_end/, async route => {
    await released;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Load older records' }).click();
  await page.getByLabel('Project').fill('stormy-harbor');
  await page.getByLabel('Project').press('Enter');
  await expect.poll(() => page.locator('.log-row').count()).toBeGreaterThan(0);
  await page.locator('.query-panel:not([aria-busy])').waitFor();
  const before = await page.locator('.log-row').count();
  const late = page.waitForResponse(/iso_timestamp_end/);
  release();
  await (await late).finished();
  await page.evaluate('new Promise(resolve => setTimeout(resolve, 200))');
  expect(await page.locator('.log-row').count()).toBe(before);
});

test('the layout does not shift while a view loads', async () => {
  tab = await openTab({ token: inject('token') });
  const { page } = tab;
  for (const view of ['functions', 'usage', 'logs']) {
    await tab.goTo(`?view=${view}&project=busy-market`);
    await page.locator(':is(.chart, .log-row):visible').first().waitFor();
    const shift = await page.evaluate<number>(`new Promise(resolve => {
      new PerformanceObserver(list => resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0)))
        .observe({ type: 'layout-shift', buffered: true });
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(0))));
    })`);
    expect(shift).toBeLessThan(0.02);
  }
});

test('the filter hides log records on a phone too', async () => {
  tab = await openTab({ token: inject('token'), viewport: PHONE });
  const { page } = tab;
  await tab.goTo('?view=logs&project=stormy-harbor&range=all');
  await page.getByLabel('Filter loaded records').fill('no record contains this');
  await page.getByText('0 of 100 records').waitFor();
  expect(await page.locator('.log-row:visible').count()).toBe(0);
});
