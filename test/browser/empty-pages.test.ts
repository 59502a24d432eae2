// What pages without a result say on a server that has only the two edge requests of the README: what exists, and what is missing.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { createTempDirectory, type ServerProcess, startServer } from '../support/process.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';
import { checkAppearance } from './support/accessibility.ts';
import { openTab, type Tab, type TabOptions } from './support/tab.ts';

const data = createTempDirectory();
let tokens: TestTokens<'all' | 'builtIn' | 'search'>;
let server: ServerProcess;

const countRecords = async () => {
  const { rows } = await fetchResponse(`${server.url}/api/endpoints/query/projects.active`, {
    headers: { 'X-API-KEY': tokens.secrets.all },
  });
  return rows.reduce((total, { count }) => total + Number(count), 0);
};

/** Waits until queries return the records. */
const send = async (records: readonly object[]) => {
  const before = await countRecords();
  const { status } = await fetch(`${server.internalUrl}/api/logs?source_name=edge`, {
    method: 'POST',
    headers: { 'X-API-KEY': tokens.secrets.all, 'Content-Type': 'application/json' },
    body: JSON.stringify(records),
  });
  expect(status).toBe(200);
  const isStored = async () => expect(await countRecords()).toBe(before + records.length);
  await vi.waitFor(isStored, { timeout: 20_000, interval: 200 });
};

const createRequest = (project: string, path: string, ageDays = 0) => ({
  project,
  timestamp: new Date(Date.now() - ageDays * 86_400_000).toISOString(),
  event_message: `GET ${path}`,
  metadata: { request: { path, host: `${project}.example.com` } },
});

beforeAll(async () => {
  tokens = await createTokens({
    all: { scopes: ['query', 'ingest'] },
    builtIn: { scopes: ['query:functions.invocation-stats', 'query:usage.api-counts', 'query:logs.all'] },
    search: { scopes: ['query:logs.search'] },
  });
  server = await startServer(['--data', data.path, '--tokens', tokens.file]);
  await send([createRequest('abc', '/rest/v1/todos'), createRequest('abc', '/auth/v1/token')]);
});
afterAll(async () => {
  await server.stop();
  tokens.remove();
  data.remove();
});

let tab: Tab;
afterEach(() => tab.close());
const open = async (search: string, options: TabOptions = {}) => {
  tab = await openTab({ token: tokens.secrets.all, url: server.url, ...options });
  await tab.goTo(search);
  return tab.page;
};
const readMessage = async () => (await tab.page.locator('.message').textContent()) ?? '';

test('the functions page of a project without function requests names its edge requests, which a link opens', async () => {
  const page = await open('?view=functions&project=abc');
  await page.getByText('Project abc has no function requests in the last 90 days. It has:').waitFor();
  await page.getByText(/^2 edge requests, the newest .* ago$/).waitFor();
  await page.getByRole('heading', { name: 'Send the first function request' }).waitFor();
  await page.getByText('"function_id":"hello"').waitFor();
  expect(await readMessage()).not.toMatch(/spelling|store has no|Records that remain/);
  await checkAppearance(tab, 'empty-other-kind');
  await page.getByRole('link', { name: '2 edge requests' }).click();
  await page.waitForURL(/view=logs&project=abc&kind=edge/);
  await expect.poll(() => page.locator('.log-row').count()).toBe(2);
});

test('the log of another kind names the edge requests, and shows how to send a record of that kind', async () => {
  const page = await open('?view=logs&project=abc&range=all&kind=postgres');
  await page.getByRole('heading', { name: 'No Postgres records of project abc' }).waitFor();
  await page.getByRole('link', { name: '2 edge requests' }).waitFor();
  await page.getByRole('heading', { name: 'Send the first Postgres record' }).waitFor();
  await page.getByText('source_name=postgres').waitFor();
  expect(await readMessage()).not.toMatch(/spelling|store has no/);
});

test('a search in a log kind without matches names the matches of other kinds', async () => {
  const page = await open('?view=logs&project=abc&range=all&kind=postgres&query=todos');
  await page.getByText('Other log kinds have matches: 1 edge request.').waitFor();
  await page.getByRole('button', { name: 'Search all logs' }).click();
  await page.waitForURL(/kind=all/);
  await expect.poll(() => page.locator('.log-row').count()).toBe(1);
});

test.each(['functions', 'usage', 'logs'])(
  'the %s page of a misspelt project links to the projects that exist',
  async view => {
    const page = await open(`?view=${view}&project=abx`);
    await page.getByText('Project abx has no records of any log kind in the last 90 days').waitFor();
    await page.getByText(/^2 records, newest .* ago$/).waitFor();
    expect(await readMessage()).not.toMatch(/first|store has no/i);
    await page.getByRole('link', { name: 'abc', exact: true }).click();
    await page.waitForURL(new RegExp(`view=${view}&project=abc`));
  },
);

describe('a token without logs.top', () => {
  test('the functions page says only what is known of the function log', async () => {
    const page = await open('?view=functions&project=abc', { token: tokens.secrets.builtIn });
    await page.getByText('0 rows: the store has no function_edge records of this project').waitFor();
    await page.getByText('The function log has no records of this project').waitFor();
    await page.getByRole('heading', { name: 'Send the first function request' }).waitFor();
    expect(await readMessage()).not.toMatch(/There are no records for this project|no records yet/);
  });

  test('a search says only what is known of the log kind', async () => {
    const page = await open('?view=logs&project=abc&range=all&kind=postgres', {
      token: tokens.secrets.search,
    });
    await page.getByText('There are no Postgres records that your token can read.').waitFor();
    expect(await readMessage()).not.toMatch(/store has no|spelling/);
  });
});

describe('a project with an edge request of three days ago', () => {
  beforeAll(() => send([createRequest('old', '/rest/v1/todos', 3)]));

  test('the usage page names it, and offers a longer range', async () => {
    const page = await open('?view=usage&project=old&range=1hr');
    await page.getByText('1 edge request, the newest 3 d ago').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('img', { name: /Requests/ }).waitFor();
  });

  test('the log says that it is older than the retention of the tier, and links to all that is stored', async () => {
    const page = await open('?view=logs&project=old&kind=edge&range=all&tier=FREE');
    await page.getByText('No edge requests are within the retention of the tier FREE.').waitFor();
    expect(await readMessage()).not.toContain('spelling');
    await page.getByRole('link', { name: '1 edge request' }).click();
    await page.waitForURL(url => !url.searchParams.has('tier'));
    await expect.poll(() => page.locator('.log-row').count()).toBe(1);
  });
});
