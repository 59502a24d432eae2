// The console of a server that has the explore pack, many custom endpoints and, at first, no records.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { type CustomEndpoints, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { createTempDirectory, type ServerProcess, startServer } from '../support/process.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';
import { findAccessibilityViolations } from './support/accessibility.ts';
import { openTab, PHONE, type Tab, type TabOptions } from './support/tab.ts';

const AREAS = ['billing', 'errors', 'latency', 'paths', 'users'];
const NAMES = AREAS.flatMap(area =>
  ['daily', 'hourly', 'top', 'by-region', 'by-plan', 'trend'].map(each => `${area}.${each}`),
);

const createDefinition = (name: string) => `
id: ${randomUUID()}
name: ${name}
description: The number of requests in a time range.
reads: edge
parameters:
  project: { type: text, required: true, description: Project reference. }
  seen_start: { type: timestamp, description: Only requests after this time. }
  seen_end: { type: timestamp, description: Only requests up to this time. }
columns:
  path: { type: text, description: The path. }
cache: none
`;

const SQL = `
select path from edge_logs
where project = $project
  and ($seen_start is null or timestamp > $seen_start)
  and ($seen_end is null or timestamp <= $seen_end)`;

const PROJECT = "it's-new";

const data = createTempDirectory();
let custom: CustomEndpoints;
let tokens: TestTokens<'all' | 'pinned'>;
let server: ServerProcess;
beforeAll(async () => {
  custom = writeEndpointFolders(
    Object.fromEntries(NAMES.map(name => [name, { yaml: createDefinition(name), sql: SQL }])),
  );
  tokens = await createTokens({
    all: { scopes: ['query', 'ingest'] },
    pinned: { scopes: ['query'], projects: [PROJECT] },
  });
  server = await startServer([
    ...['--data', data.path, '--tokens', tokens.file, '--endpoints', custom.folder],
  ]);
});
afterAll(async () => {
  await server.stop();
  custom.remove();
  tokens.remove();
  data.remove();
});

let tab: Tab;
afterEach(() => tab.close());
const open = async (search: string, options: TabOptions = {}) => {
  // The custom endpoints have no explanation, so a request for one gets 404.
  const common = { token: tokens.secrets.all, url: server.url, expectedStatuses: [404] };
  tab = await openTab({ ...common, ...options });
  await tab.goTo(search);
  return tab.page;
};

const send = async (kind: string, records: readonly object[]) => {
  const url = `${server.internalUrl}/api/logs?source_name=${kind}`;
  const headers = { 'X-API-KEY': tokens.secrets.all, 'Content-Type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(records) });
  expect(await response.json()).toMatchObject({ accepted: records.length, rejected: 0 });
};

const countRecords = async () => {
  const { rows } = await fetchResponse(`${server.url}/api/endpoints/query/projects.active`, {
    headers: { 'X-API-KEY': tokens.secrets.all },
  });
  return rows.reduce((total, { count }) => total + Number(count), 0);
};

test('a page without a project shows how to send the first record if the store is empty', async () => {
  const page = await open('');
  await page.getByRole('heading', { name: 'Send your first log' }).waitFor();
  await page.getByText('"project":"my-project"').waitFor();
  await tab.screenshot('no-project-empty-store');
});

test('the search of a project shows how to send the first record if the log is empty', async () => {
  const page = await open('?view=logs&project=abc&range=all');
  await page.getByRole('heading', { name: 'Send your first log' }).waitFor();
  await page.getByText('"project":"abc"').waitFor();
});

describe('30 endpoints', () => {
  test('a menu lists them in groups, filters them and opens one with the keyboard', async () => {
    const page = await open('?view=usage&project=abc');
    await page.getByRole('button', { name: 'Endpoints (30)' }).waitFor();
    const tabs = page.getByRole('navigation').getByRole('link');
    await expect.poll(() => tabs.allTextContents()).toEqual(['Overview', 'Functions', 'API usage', 'Logs']);
    await page.keyboard.press('e');
    const links = page.locator('.nav-menu .nav-link:visible');
    await expect.poll(() => links.count()).toBe(30);
    expect(await page.locator('.nav-menu h2').allTextContents()).toEqual(AREAS);
    await tab.screenshot('endpoints-menu');
    expect(await findAccessibilityViolations(page)).toEqual([]);
    await page.keyboard.type('latency.by');
    await expect.poll(() => links.allTextContents()).toEqual(['latency.by-plan', 'latency.by-region']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/view=endpoint\.latency\.by-region/);
    await page.getByRole('button', { name: 'Endpoints: latency.by-region' }).waitFor();
    expect(await page.locator('.nav-menu').isVisible()).toBe(false);
  });

  test('the menu fits the width of a phone', async () => {
    const page = await open('?view=usage&project=abc', { viewport: PHONE });
    await page.getByRole('button', { name: 'Endpoints (30)' }).click();
    await page.getByLabel('Filter endpoints').waitFor();
    await tab.screenshot('endpoints-menu-phone');
    const { left, right } = await page.evaluate<{ left: number; right: number }>(
      "document.querySelector('.nav-menu').getBoundingClientRect().toJSON()",
    );
    expect(left).toBeGreaterThanOrEqual(0);
    expect(right).toBeLessThanOrEqual(PHONE.width);
  });
});

test('a time range whose start is after its end is explained and can be swapped', async () => {
  const page = await open(
    '?view=endpoint.paths.top&project=abc&p.seen_start=2026-11-15T10:00:00Z&p.seen_end=2026-11-14T10:00:00',
  );
  await page.getByRole('heading', { name: 'The time range is reversed' }).waitFor();
  await page
    .getByText('starts at 15 Nov 2026, 11:00:00, and it ends before that, at 14 Nov 2026, 11:00:00')
    .waitFor();
  expect(tab.apiRequests.filter(({ url }) => url.pathname.includes('/explain/'))).toEqual([]);
  await page.getByRole('button', { name: 'Swap start and end' }).click();
  await page.getByRole('heading', { name: 'No rows' }).waitFor();
  expect(await page.getByLabel('seen_start').inputValue()).toBe('2026-11-14T11:00');
  expect(await page.getByLabel('seen_end').inputValue()).toBe('2026-11-15T11:00');
});

test('the command for an empty store sends a record that the console then shows', async () => {
  const page = await open('?view=usage&project=it%27s-new', {
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  await page.getByRole('heading', { name: 'Send your first log' }).waitFor();
  await tab.screenshot('first-log');
  expect(await findAccessibilityViolations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Copy the second command' }).click();
  await page.getByText('Copied').waitFor();
  const command = await page.evaluate<string>('navigator.clipboard.readText()');
  // A shell splits the command, as it would for the user.
  const printArguments = command.replace(/^curl -X POST/, "printf '%s\\n'");
  const [url = '', , key = '', , type = '', , body = ''] = execFileSync('sh', ['-c', printArguments], {
    encoding: 'utf8',
    env: { ...process.env, DENDRO_TOKEN: tokens.secrets.all },
  }).split('\n');
  expect(new URL(url).origin).toBe(server.internalUrl);
  const response = await fetch(url, {
    method: 'POST',
    headers: Object.fromEntries([key, type].map(header => header.split(': '))),
    body,
  });
  expect(await response.json()).toMatchObject({ accepted: 1, rejected: 0 });
  await expect.poll(countRecords, { timeout: 20_000 }).toBe(1);
  await tab.goTo('?view=logs&project=it%27s-new&range=all');
  await page.getByText('GET /rest/v1/hello 200').first().waitFor();
});

describe('projects and functions from the data', () => {
  beforeAll(async () => {
    const invoke = (function_id: string) => ({
      event_message: 'POST 200',
      metadata: { project_ref: PROJECT, function_id, execution_time_ms: 5, response: { status_code: 200 } },
    });
    await send('function_edge', [invoke('resize'), invoke('hello'), invoke('hello')]);
    await send('edge', [{ project: 'other', event_message: 'GET / 200' }]);
    await vi.waitFor(async () => expect(await countRecords()).toBe(5), { timeout: 20_000, interval: 200 });
  });

  test('a token that is pinned to one project opens it at once', async () => {
    const page = await open('?view=functions', { token: tokens.secrets.pinned });
    await page.waitForURL(/project=it%27s-new/);
    await page.getByRole('img', { name: /^Invocations/ }).waitFor();
    expect(await page.getByLabel('Project').inputValue()).toBe(PROJECT);
    await page.keyboard.press('?'); // the project field does not have the focus
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  });

  test('a page without a project lists the projects with records, and the project field suggests them', async () => {
    const page = await open('?view=functions');
    const links = page.locator('.project-list a');
    await links.first().waitFor();
    expect(await links.allTextContents()).toEqual([PROJECT, 'other']);
    await page.getByText(/^4 records, newest .* ago$/).waitFor();
    await tab.screenshot('projects');
    expect(await findAccessibilityViolations(page)).toEqual([]);
    const field = page.getByLabel('Project');
    await field.pressSequentially('oth');
    const active = page.getByRole('group', { name: 'With records of the last day' }).getByRole('option');
    await expect.poll(() => active.allTextContents()).toEqual(['other1 record']);
    await page.keyboard.press('Escape');
    await links.first().click();
    await page.waitForURL(/project=it%27s-new/);
  });

  test('the function id suggests the functions of the project, and a click on a bar opens their logs', async () => {
    const page = await open('?view=functions&project=it%27s-new&range=1hr');
    await page.getByLabel('Function id').click();
    const options = page.getByRole('group', { name: 'Invocations in the last hour' }).getByRole('option');
    await expect.poll(() => options.allTextContents()).toEqual(['hello2', 'resize1']);
    await tab.screenshot('function-suggestions');
    await options.first().click();
    await page.waitForURL(/function=hello/);
    await page.getByText('of 2 invocations', { exact: true }).waitFor();
    const chart = page.getByRole('img', { name: /^Invocations/ });
    await chart.focus();
    await page.keyboard.press('End');
    const tooltip = page.locator('.tooltip').first();
    for (let i = 0; i < 10 && !(await tooltip.textContent())?.includes('Succeeded2'); i++)
      await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page.waitForURL(/view=logs/);
    const settings = Object.fromEntries(new URL(page.url()).searchParams);
    expect(settings).toMatchObject({ kind: 'function_edge', query: 'function:hello', range: 'custom' });
    await expect.poll(() => page.locator('.log-row').count()).toBe(2);
  });
});
