// The page Alerts of the console: states, instances, the time line of 7 days, and the command for a silence.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type CustomEndpoints, testEndpoint, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { createTempDirectory, type ServerProcess, startServer } from '../support/process.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';
import { checkAppearance } from './support/accessibility.ts';
import { HOSTILE } from './support/hostile-records.ts';
import { openTab, type Tab } from './support/tab.ts';

/** Its text differs at every evaluation. */
const alertOf = (name: string, where: string, alert: object = {}) =>
  testEndpoint(name, {
    columns: { project: 'text', at: 'utc_datetime' },
    sql: `select 'acme' as project, $now as at where ${where}`,
    more: { alert: { every: '10s', key: ['project'], summary: 'a problem in {project} at {at}', ...alert } },
  });

const data = createTempDirectory();
let custom: CustomEndpoints;
let tokens: TestTokens<'all'>;
let server: ServerProcess;
let withoutAlerts: ServerProcess;
beforeAll(async () => {
  custom = writeEndpointFolders({
    firing: alertOf('test.firing', 'true', { severity: 'critical' }),
    pending: alertOf('test.pending', 'true', { for: '1h' }),
    quiet: alertOf('test.quiet', 'false'),
    hostile: testEndpoint('test.hostile', {
      columns: { project: 'text', detail: 'text' },
      sql: `select 'hostile' as project, '${HOSTILE}' as detail`,
      more: { alert: { every: '10s', key: ['project', 'detail'], summary: '{detail} in {project}' } },
    }),
  });
  tokens = await createTokens({ all: { scopes: ['query'] } });
  const args = (directory: string) => ['--data', `${data.path}/${directory}`, '--tokens', tokens.file];
  server = await startServer([...args('with'), '--endpoints', custom.folder, '--alerts']);
  withoutAlerts = await startServer([...args('without')]);
});
afterAll(async () => {
  await server?.stop();
  await withoutAlerts?.stop();
  custom.remove();
  tokens.remove();
  data.remove();
});

let tab: Tab;
afterEach(() => tab.close());

test('shows the alerts that need attention first, with their instances and the command for a silence', async () => {
  tab = await openTab({ token: tokens.secrets.all, url: server.url });
  await tab.goTo('?view=alerts');
  const { page } = tab;
  await page.getByRole('heading', { name: 'test.firing' }).waitFor();
  await expect
    .poll(async () => {
      await page.reload();
      await page.getByRole('heading', { name: 'test.firing' }).waitFor();
      return page.locator('.alert-state').allTextContents();
    })
    .toEqual(['firing', 'firing', 'pending', 'ok']);
  expect(await page.locator('section.alert h2').allTextContents()).toEqual([
    'test.firing',
    'test.hostile',
    'test.pending',
    'test.quiet',
  ]);
  const firing = page.getByRole('region', { name: 'Instances of test.firing' });
  expect(await firing.textContent()).toContain('a problem in acme');
  await page.getByRole('img', { name: 'Last 7 days: 0 problems resolved, 1 firing' }).first().waitFor();
  const line = await page.locator('.alert-line').first().boundingBox();
  const bar = await page.locator('.alert-line .firing').first().boundingBox();
  expect((bar?.x ?? 0) + (bar?.width ?? 0)).toBeCloseTo((line?.x ?? 0) + (line?.width ?? 0), 0);
  await page.getByText('Silence').first().click();
  await page.getByText("dendro alert silence 'test.firing' --for 2h").waitFor();
  await checkAppearance(tab, 'alerts');
  const before = await firing.textContent();
  await expect.poll(() => firing.textContent(), { timeout: 40_000 }).not.toBe(before);
  await page.getByText("dendro alert silence 'test.firing' --for 2h").waitFor(); // still open
});

test('the start page shows what fires in the project, with links to the alert and to the records', async () => {
  tab = await openTab({ token: tokens.secrets.all, url: server.url });
  const { page } = tab;
  const entries = page.locator('.overview-alerts li');
  await tab.goTo('?view=overview&project=acme');
  await expect.poll(() => entries.count()).toBe(1);
  expect(await entries.textContent()).toContain('firingtest.firinga problem in acme');
  await entries.getByRole('link', { name: /^since/ }).click();
  await page.waitForURL(/view=logs/);
  const { searchParams } = new URL(page.url());
  const start = Date.parse(searchParams.get('start') ?? '');
  expect(Math.abs(Date.now() - 15 * 60_000 - start)).toBeLessThan(10 * 60_000);
  await page.goBack();
  await entries.getByRole('link', { name: 'test.firing' }).click();
  await page.getByRole('heading', { name: 'test.firing' }).waitFor();
});

test('texts of problems are shown as text, on the start page and in the alerts view', async () => {
  tab = await openTab({ token: tokens.secrets.all, url: server.url });
  const { page } = tab;
  await tab.goTo('?view=overview&project=hostile');
  await page.locator('.overview-alerts').getByText(`${HOSTILE} in hostile`).waitFor();
  await checkAppearance(tab, 'overview-alerts');
  await tab.goTo('?view=alerts');
  await page.getByRole('cell', { name: `${HOSTILE} in hostile` }).waitFor();
  expect(await page.locator('img[src="x"], a[href^="javascript"]').count()).toBe(0);
});

test('the start page asks a server without alerts only once', async () => {
  tab = await openTab({ token: tokens.secrets.all, url: server.url, expectedStatuses: [404] });
  const { page } = tab;
  const body = JSON.stringify({ error: { code: 'not_found', message: 'alerts are off' } });
  await page.route('**/api/alerts', route => route.fulfill({ status: 404, body }));
  const refused = page.waitForResponse('**/api/alerts');
  await tab.goTo('?view=overview&project=acme');
  await (await refused).finished();
  await page.getByRole('button', { name: 'Refresh' }).click();
  await expect
    .poll(() => tab.apiRequests.filter(({ url }) => url.pathname.endsWith('logs.top')).length)
    .toBeGreaterThan(2);
  expect(tab.apiRequests.filter(({ url }) => url.pathname === '/api/alerts')).toHaveLength(1);
  expect(await page.locator('.overview-alerts').isVisible()).toBe(false);
});

test('is not in the navigation of a server without alerts', async () => {
  tab = await openTab({ token: tokens.secrets.all, url: withoutAlerts.url });
  await tab.goTo('');
  await tab.page.getByRole('navigation', { name: 'Views' }).waitFor();
  expect(await tab.page.getByRole('link', { name: 'Alerts', exact: true }).count()).toBe(0);
});
