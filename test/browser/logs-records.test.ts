// The records of a search: pages, live tail, details, links, surroundings, and the search as curl and CSV.
import { execFileSync } from 'node:child_process';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, inject, test } from 'vitest';
import { FORMULA, HTML, RAY, STACK_TRACE } from './support/search-records.ts';
import { sendLogs } from './support/send-logs.ts';
import { pauseClock, queryApi, useTab } from './support/tab.ts';

const { tab, count, rows, settings, button, open } = useTab({
  token: inject('exploreToken'),
  permissions: ['clipboard-read', 'clipboard-write'],
  expectedStatuses: [429],
});

const SEARCH = '?view=logs&project=search&kind=edge&range=all';
const TRACED = '?view=logs&project=traced&kind=edge&range=all';
const readMessages = () => tab.page.locator('.log-message').allTextContents();
const readClipboard = () => tab.page.evaluate<string>('navigator.clipboard.readText()');

describe('pages', () => {
  test('older and newer pages contain every record once, even if all have one timestamp', async () => {
    await open('?view=logs&project=burst&range=1day');
    await count().getByText('Newest 100 of 250 records').waitFor();
    const first = await readMessages();
    await button('Older').click();
    await count().getByText('101–200 of 250 records').waitFor();
    const second = await readMessages();
    await button('Older').click();
    await count().getByText('201–250 of 250 records').waitFor();
    const third = await readMessages();
    expect(await button('Older').isVisible()).toBe(false);
    expect(new Set([...first, ...second, ...third]).size).toBe(250);
    await button('Newer').click();
    await count().getByText('101–200 of 250 records').waitFor();
    expect(await readMessages()).toEqual(second);
    await button('Newer').click();
    await count().getByText('1–100 of 250 records').waitFor();
    expect(await readMessages()).toEqual(first);
    await button('Newest').click();
    await count().getByText('Newest 100 of 250 records').waitFor();
  });

  test('while another page loads, the old records stay, and no button leads on from them', async () => {
    const { page } = tab;
    await open('?view=logs&project=burst&range=1day');
    await count().getByText('Newest 100 of 250 records').waitFor();
    const first = await readMessages();
    let release = () => {};
    const released = new Promise<void>(resolve => {
      release = resolve;
    });
    await page.route(
      url => url.pathname.endsWith('/logs.search') && url.searchParams.has('cursor'),
      async route => {
        await released;
        await route.continue();
      },
    );
    await button('Older').click();
    await page.waitForURL(/cursor=/);
    expect(await readMessages()).toEqual(first);
    expect(await count().textContent()).toBe('Newest 100 of 250 records');
    expect(await button('Older').isVisible()).toBe(false);
    await page.evaluate("document.querySelector('.page-buttons button:last-child').click()");
    release();
    await count().getByText('101–200 of 250 records').waitFor();
    expect(settings()['offset']).toBe('100');
  });

  test('a total from before the newest records arrived is not shown', async () => {
    const row = { timestamp: Date.now() * 1000, bucket_seconds: 60, category: '2xx', count: 20 };
    const body = JSON.stringify({ result: [row] });
    await tab.page.route('**/logs.histogram?**', route => route.fulfill({ body }));
    await open(SEARCH);
    await tab.page.locator('.histogram h2').getByText('20 records', { exact: true }).waitFor();
    expect(await count().textContent()).toBe('Newest 100 records');
  });

  test('a page that the size of a response cut says so above the list', async () => {
    await tab.page.route('**/logs.search?**', async route => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), 'dendro-clipped': 'byte-limit' } });
    });
    await open(SEARCH);
    await tab.page.locator('.note').getByText('the size of a response is limited').waitFor();
  });

  test('a link to a page shows the same page, and leads to the newest one', async () => {
    await open(`${SEARCH}&range=1day`);
    await button('Older').click();
    await count().getByText('101–200 of 250 records').waitFor();
    const messages = await readMessages();
    await tab.page.reload();
    await count().getByText('101–200 of 250 records').waitFor();
    expect(await readMessages()).toEqual(messages);
    await button('Newest').click();
    await count().getByText('Newest 100 of 250 records').waitFor();
  });

  test('another project leads to its newest page', async () => {
    const { page } = tab;
    await open('?view=logs&project=burst&range=1day');
    await button('Older').click();
    await count().getByText('101–200 of 250 records').waitFor();
    await page.getByRole('combobox', { name: 'Project' }).fill('tied');
    await page.getByRole('combobox', { name: 'Project' }).press('Enter');
    await count().getByText('Newest 100 of 210 records').waitFor();
    expect(settings()['cursor']).toBeUndefined();

    await button('Older').click();
    await page.waitForURL(/cursor=/);
    await page.getByRole('link', { name: 'Functions' }).click();
    await page.getByRole('combobox', { name: 'Project' }).fill('burst');
    await page.getByRole('combobox', { name: 'Project' }).press('Enter');
    await page.waitForURL(/view=functions&project=burst/);
    await page.getByRole('link', { name: 'Logs', exact: true }).click();
    await count().getByText('Newest 100 of 250 records').waitFor();
  });
});

describe('live tail', () => {
  const send = async (project: string, message: string) => {
    const record = {
      project,
      event_message: message,
      metadata: { request: { method: 'GET', path: '/tail' } },
    };
    await sendLogs('edge', [record]);
    await expect
      .poll(async () => (await queryApi('logs.search', { project, query: `"${message}"` })).rows.length)
      .toBe(1);
  };

  test('new records appear by themselves, but wait behind a button while a row is open or has the focus', async () => {
    const { page } = tab;
    await send('tail', 'record one');
    await page.clock.install();
    await open('?view=logs&project=tail&range=all');
    await pauseClock(page);
    await send('tail', 'record two');
    await page.clock.runFor(3500);
    await expect.poll(readMessages).toEqual(['record two', 'record one']);

    await page.locator('.log-toggle').last().click();
    await send('tail', 'record three');
    await page.clock.runFor(3500);
    const waiting = page.getByRole('button', { name: '1 new record', exact: true });
    await waiting.waitFor();
    await send('tail', 'record four');
    await page.clock.runFor(3500);
    await page.getByRole('button', { name: '2 new records', exact: true }).waitFor();
    expect(await readMessages()).toEqual(['record two', 'record one']);
    await page.getByRole('button', { name: '2 new records', exact: true }).click();
    const all = ['record four', 'record three', 'record two', 'record one'];
    expect(await readMessages()).toEqual(all);
    expect(await page.locator('.log-toggle').last().getAttribute('aria-expanded')).toBe('true');

    // The row is closed, but its button still has the focus.
    await page.locator('.log-toggle').last().click();
    await send('tail', 'record five');
    await page.clock.runFor(3500);
    await waiting.waitFor();
    await page.locator('.log-toggle').last().blur();
    await page.clock.runFor(3500);
    await expect.poll(readMessages).toEqual(['record five', ...all]);
    expect(await waiting.isVisible()).toBe(false);
  });

  test('the live tail requests only recent records, and the switch turns it off', async () => {
    const { page } = tab;
    await page.clock.install();
    await open(SEARCH);
    const searches = () => tab.apiRequests.filter(({ url }) => url.pathname.endsWith('/logs.search'));
    await pauseClock(page);
    await page.clock.runFor(3500);
    await expect.poll(() => searches().length).toBe(2);
    const start = Date.parse(searches()[1]?.url.searchParams.get('iso_timestamp_start') ?? '');
    expect(Date.now() - start).toBeLessThan(60 * 60_000); // the records of the project are up to 250 minutes old
    await page.getByRole('switch', { name: 'Live tail' }).uncheck();
    await page.clock.runFor(60_000);
    expect(searches().length).toBe(2);
  });

  test('more new records than a page load the newest page again', async () => {
    const { page } = tab;
    await page.clock.install();
    await open(SEARCH);
    const body = JSON.stringify({
      result: Array.from({ length: 100 }, (_, i) => ({
        id: `new-${i}`,
        timestamp: (Date.now() - i) * 1000,
        event_message: `new ${i}`,
        metadata: {},
        kind: 'edge',
      })),
    });
    const headers = { 'Dendro-Next-Cursor': 'more' };
    await page.route('**/logs.search?**', route => route.fulfill({ body, headers }));
    await pauseClock(page);
    await page.clock.runFor(3500);
    await expect.poll(async () => (await readMessages()).length).toBe(100);
    await expect.poll(async () => (await readMessages())[0]).toBe('new 0');
    const last = tab.apiRequests.findLast(({ url }) => url.pathname.endsWith('/logs.search'));
    expect(last?.url.searchParams.get('iso_timestamp_start')).toBeNull();
  });
});

describe('details', () => {
  const openFirst = async (search: string) => {
    await open(search);
    await tab.page.locator('.log-toggle').first().click();
  };

  test('line breaks of messages and values are preserved', async () => {
    await openFirst(`${SEARCH}&kind=postgres`);
    const message = tab.page.locator('.details-message');
    expect(await message.innerText()).toBe(STACK_TRACE);
    const value = tab.page.locator('.tree-text', { hasText: 'select 1' });
    expect(await value.innerText()).toBe('select 1\n  / 0');
  });

  test('a long array is collapsed, and its items are shown in steps', async () => {
    await openFirst(`${SEARCH}&kind=postgres`);
    const { page } = tab;
    expect(await page.locator('.tree').getByText('two', { exact: true }).isVisible()).toBe(true);
    expect(await page.locator('.tree').getByText('sample 0', { exact: true }).count()).toBe(0);
    await page.locator('.tree summary', { hasText: 'samples[250]' }).click();
    await page.locator('.tree').getByText('sample 99', { exact: true }).waitFor();
    expect(await page.locator('.tree').getByText('sample 100', { exact: true }).count()).toBe(0);
    await button('Show 100 more of 150').click();
    await button('Show 50 more of 50').click();
    await page.locator('.tree').getByText('sample 249', { exact: true }).waitFor();
  });

  test('a value can be included, then excluded instead, with mouse or keyboard', async () => {
    await openFirst(SEARCH);
    const { page } = tab;
    await page.locator('.tree .value', { hasText: '200' }).click();
    await button('Include status 200').click();
    await page.waitForURL(/query=status%3A200/);
    await count().getByText('50 records', { exact: true }).waitFor();
    await page.locator('.log-toggle').nth(1).click();
    await page.locator('.tree .value', { hasText: '200' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/query=-status%3A200/);
    await count().getByText('Newest 100 of 200 records').waitFor();
  });

  test.each([
    ['by its path', 'note', HTML, `request.headers.note:"${HTML}"`, `${SEARCH}`],
    ['by its path through an array', 'cf_ray', RAY, `request.headers.cf_ray:${RAY}`, TRACED],
    ['by its key at the top of the metadata', 'region', 'eu-west', 'metadata.region:eu-west', TRACED],
    ['by its path, also if it is true or false', 'retried', 'true', 'metadata.retried:true', TRACED],
    [
      'by its path, with an odd key in quotes',
      'odd key',
      'odd value',
      'request.headers."odd key":"odd value"',
      TRACED,
    ],
    ['as a phrase if it is in an array of several', '1', 'two', 'two', `${SEARCH}&kind=postgres`],
    ['as a phrase if it has several lines', 'query', 'select 1', '"select 1"', `${SEARCH}&kind=postgres`],
  ])(
    'a value without a short name is included %s, and finds its record',
    async (_, key, text, query, search) => {
      await openFirst(search);
      const values = tab.page.locator('.tree .value', { hasText: text });
      const openTree = "for (const each of document.querySelectorAll('.tree details')) each.open = true";
      // A branch is rendered when it is opened.
      await expect.poll(() => tab.page.evaluate(openTree).then(() => values.count())).not.toBe(0);
      await values.last().click();
      await tab.page.getByRole('button', { name: `Include ${key} ${text}` }).click();
      await tab.page.waitForURL(/query=/);
      expect(settings()['query']).toBe(query);
      await count().getByText('1 record', { exact: true }).waitFor();
    },
  );

  test('texts of records are shown as text, never as HTML', async () => {
    await openFirst(SEARCH);
    await tab.page.locator('.details').getByText(HTML).waitFor();
    expect(await tab.page.locator('img[src="x"]').count()).toBe(0);
  });
});

describe('link to a record', () => {
  test('the link shows the record between its neighbours, and leads back to the search', async () => {
    await open(`${SEARCH}&query=status:404`);
    const { page } = tab;
    await page.locator('.log-toggle').nth(3).click();
    const message = (await readMessages())[3];
    await button('Copy link').click();
    await page.getByText('Copied').waitFor();
    const link = new URL(await readClipboard());
    expect(link.href).not.toContain(inject('exploreToken'));

    await open(link.search);
    expect(await rows().count()).toBe(21);
    expect(await page.locator('.log-row[aria-current] .log-message').textContent()).toBe(message);
    expect(await page.locator('.details-message').innerText()).toBe(message);
    await button('Back to the search').click();
    await count().getByText('50 records', { exact: true }).waitFor();
    expect(settings()).toMatchObject({ query: 'status:404' });
    expect(settings()['record']).toBeUndefined();
  });

  test('the surrounding records of a record are one click away, and the back button returns', async () => {
    await open(`${SEARCH}&query=status:404`);
    const { page } = tab;
    await page.locator('.log-toggle').first().click();
    await button('Surrounding records').click();
    await page.locator('.surroundings .log-row[aria-current]').waitFor();
    await button('Open as a page').click();
    await count().getByText('This record and 12 around it').waitFor(); // only two records are newer
    await page.goBack();
    await count().getByText('50 records', { exact: true }).waitFor();
  });

  test('a link to a record that does not exist says so', async () => {
    await tab.goTo(`${SEARCH}&record=nothing&at=1763190896789012`);
    await tab.page.getByRole('heading', { name: 'This record does not exist' }).waitFor();
    await button('Back to the search').click();
    await rows().first().waitFor();
  });
});

describe('export', () => {
  test('the curl command returns the records of the page, and contains no token', async () => {
    await open(`${SEARCH}&query=${encodeURIComponent('status:404 -"it\'s"')}`);
    await button('Copy as curl').click();
    await tab.page.getByText('Copied').waitFor();
    const command = await readClipboard();
    expect(command).toContain('X-API-KEY: $DENDRO_TOKEN');
    expect(command).not.toContain(inject('exploreToken'));
    const output = execFileSync('sh', ['-c', `${command} --silent --noproxy '*'`], {
      env: { ...process.env, DENDRO_TOKEN: inject('exploreToken') },
      encoding: 'utf8',
    });
    const { result } = JSON.parse(output) as { result: { event_message: string }[] };
    expect(result.map(({ event_message: message }) => message)).toEqual(await readMessages());
  });

  test('the CSV file has the records of all pages, and no formula', async () => {
    await open(SEARCH);
    const downloading = tab.page.waitForEvent('download');
    await button('Download CSV').click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe('edge-search.csv');
    const text = await readText(await download.createReadStream());
    const lines = text.trimEnd().split('\r\n');
    expect(lines[0]).toBe('timestamp,id,kind,status,method,path,event_message,metadata');
    expect(lines.length).toBe(251);
    expect(lines[1]).toContain(`,200,GET,/auth/v1/token,"'${FORMULA.replaceAll('"', '""')}",`);
    await tab.page.getByText('Downloaded 250 records').waitFor();
  });

  test('a download that waits because of the rate limit can be cancelled', async () => {
    const { page } = tab;
    await open(SEARCH);
    await page.getByRole('switch', { name: 'Live tail' }).uncheck();
    const body = JSON.stringify({ error: { code: 'rate_limited', message: 'too many requests' } });
    const rejected = page.waitForResponse(response => response.status() === 429);
    await page.route('**/logs.search?**', route =>
      route.fulfill({ status: 429, body, headers: { 'Retry-After': '600' } }),
    );
    await button('Download CSV').click();
    await rejected;
    await button('Cancel').click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    await button('Download CSV').waitFor();
  });
});
