import { afterEach, describe, expect, inject, test } from 'vitest';
import { askApi, type Visitor, visit } from './support/visitor.ts';

let visitor: Visitor;
afterEach(() => visitor.leave());

describe('an empty answer says why it may be empty', () => {
  test('no records of this project', async () => {
    visitor = await visit({ token: inject('token') });
    await visitor.goTo('?view=functions&project=nobody&interval=1hr&function=hello');
    const { page } = visitor;
    await page.getByRole('heading', { name: 'No invocations of hello of nobody in the last hour' }).waitFor();
    await page.getByText('its reference may be misspelt').waitFor();
    await page.getByText('the function id may be misspelt').waitFor();
  });

  test('data only through a moment before the window', async () => {
    visitor = await visit({ token: inject('token') });
    const { page } = visitor;
    await page.route('**/api/endpoints/query/**', route =>
      route.fulfill({
        body: '{"result":[]}',
        contentType: 'application/json',
        headers: { 'Dendro-Data-Through': new Date(Date.now() - 86_400_000).toISOString() },
      }),
    );
    await visitor.goTo('?view=usage&project=busy-market');
    await page.getByText(/the data reach only through .* 24 h before the answer/).waitFor();
  });

  test('nothing at all', async () => {
    visitor = await visit({ token: inject('token') });
    const { page } = visitor;
    await page.route('**/api/endpoints/query/**', route =>
      route.fulfill({ body: '{"result":[]}', contentType: 'application/json' }),
    );
    await visitor.goTo('?view=logs&project=busy-market');
    await page.getByText('this server holds no records of the edge request log').waitFor();
  });

  test('a range that begins before the retention', async () => {
    visitor = await visit({ token: inject('token') });
    const days = (count: number) => new Date(Date.now() - count * 86_400_000).toISOString();
    const range = new URLSearchParams({ range: 'custom', start: days(5), end: days(4) });
    await visitor.goTo(`?view=logs&project=busy-market&tier=FREE&${range}`);
    await visitor.page.getByText('begins before the retention of the tier').waitFor();
  });
});

describe('an error stands in the API’s own words', () => {
  test('for a parameter, whose field is marked', async () => {
    visitor = await visit({ token: inject('token'), expectedStatuses: [400] });
    const { page } = visitor;
    await visitor.goTo('?view=usage&project=(&interval=minutely');
    const { error } = await askApi('usage.api-counts', { project: '(', interval: 'minutely' });
    expect(await page.getByRole('alert').locator('p').first().textContent()).toBe(error.message);
    expect(await page.getByLabel('Project').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Project').fill('busy-market');
    await page.getByLabel('Project').press('Enter');
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    expect(await page.getByLabel('Project').getAttribute('aria-invalid')).toBeNull();
  });

  test('for a parameter of an endpoint of one’s own', async () => {
    visitor = await visit({ token: inject('token'), expectedStatuses: [400] });
    const { page } = visitor;
    await visitor.goTo('?view=endpoint.errors.hourly&project=busy-market&p.after=yesterday');
    const { error } = await askApi('errors.hourly', { project: 'busy-market', after: 'yesterday' });
    await page.getByRole('alert').getByText(error.message).waitFor();
    expect(await page.getByLabel('after').getAttribute('aria-invalid')).toBe('true');
  });

  test('while the server starts, and it goes on by itself', async () => {
    visitor = await visit({ token: inject('token'), expectedStatuses: [503] });
    const { page } = visitor;
    const body = JSON.stringify({ error: { code: 'unavailable', message: 'still starting' } });
    await page.route(
      '**/api/endpoints',
      route => route.fulfill({ status: 503, body, headers: { 'Retry-After': '1' } }),
      { times: 2 },
    );
    await visitor.goTo('?view=usage&project=busy-market');
    await page.getByRole('alert').getByText('still starting').waitFor();
    await page.getByRole('img', { name: /Requests/ }).waitFor();
  });

  test.each([
    ['is no JSON', '<html>a proxy</html>'],
    ['is cut off', '{"result":[{"timestamp":"2026-11-14T'],
    ['holds no result', '{}'],
  ])('when an answer %s, and it goes on by itself', async (_, body) => {
    visitor = await visit({ token: inject('token') });
    const { page } = visitor;
    for (const path of ['**/api/endpoints', '**/api/endpoints/query/**'])
      await page.route(path, route => route.fulfill({ body }), { times: 1 });
    await visitor.goTo('?view=usage&project=busy-market');
    await page.getByRole('alert').getByText('the answer cannot be read').waitFor();
    await page.getByRole('img', { name: /Requests/ }).waitFor();
  });

  test('when no answer comes', async () => {
    visitor = await visit({ token: inject('token') });
    const { page, troubles } = visitor;
    await visitor.goTo('?view=usage&project=busy-market');
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    await page.context().setOffline(true);
    await page.getByRole('radio', { name: 'The last hour' }).check();
    await page.getByRole('alert').getByText('the server cannot be reached').waitFor();
    await page.context().setOffline(false);
    await page.getByRole('img', { name: /Requests/ }).waitFor();
    for (const trouble of troubles.splice(0)) expect(trouble).toContain('ERR_INTERNET_DISCONNECTED');
  });
});

test('older records of a project that was left meanwhile are not shown among those of the next', async () => {
  visitor = await visit({ token: inject('token') });
  const { page } = visitor;
  await visitor.goTo('?view=logs&project=busy-market');
  await page.locator('.log-line').first().waitFor();
  let goOn = () => {};
  const held = new Promise<void>(resolve => {
    goOn = resolve;
  });
  await page.route(/iso_timestamp_end/, async route => {
    await held;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Load older records' }).click();
  await page.getByLabel('Project').fill('stormy-harbor');
  await page.getByLabel('Project').press('Enter');
  await expect.poll(() => page.locator('.log-line').count()).toBeGreaterThan(0);
  await page.locator('.panel:not([aria-busy])').waitFor();
  const before = await page.locator('.log-line').count();
  const late = page.waitForResponse(/iso_timestamp_end/);
  goOn();
  await (await late).finished();
  await page.evaluate('new Promise(resolve => setTimeout(resolve, 200))');
  expect(await page.locator('.log-line').count()).toBe(before);
});

test('nothing jumps while a view loads', async () => {
  visitor = await visit({ token: inject('token') });
  const { page } = visitor;
  for (const view of ['functions', 'usage', 'logs']) {
    await visitor.goTo(`?view=${view}&project=busy-market`);
    await page.locator(':is(.chart, .log-line):visible').first().waitFor();
    const shift = await page.evaluate<number>(`new Promise(resolve => {
      new PerformanceObserver(list => resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0)))
        .observe({ type: 'layout-shift', buffered: true });
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(0))));
    })`);
    expect(shift).toBeLessThan(0.02);
  }
});
