// Charts: time range, shared cursor, logs of a bar, incomplete buckets, and which numbers a chart shows.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { sendLogs, sendRecentInvocations } from './support/send-logs.ts';
import { openTab, queryApi, sumColumn, type Tab } from './support/tab.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let tab: Tab;
beforeAll(async () => {
  tab = await openTab({ token: inject('token') });
});
afterAll(() => tab.close());

const plot = (name: RegExp) => tab.page.getByRole('img', { name });
const invocations = () => plot(/^Invocations/);
const readSettings = () => Object.fromEntries(new URL(tab.page.url()).searchParams);
const queries = () => tab.apiRequests.filter(({ url }) => url.pathname.includes('/query/'));

async function findBox(chart: Locator) {
  await chart.locator('canvas').waitFor();
  const box = await chart.locator('.u-over').boundingBox();
  if (box === null) throw new Error('the chart is not visible');
  return box;
}

/** Drags with the mouse between two positions, as fractions of the width. */
async function drag(chart: Locator, from: number, to: number): Promise<void> {
  const { x, y, width, height } = await findBox(chart);
  await tab.page.mouse.move(x + from * width, y + height / 2);
  await tab.page.mouse.down();
  await tab.page.mouse.move(x + ((from + to) / 2) * width, y + height / 2);
  await tab.page.mouse.move(x + to * width, y + height / 2);
  await tab.page.mouse.up();
}

/** The bounds of the range in the URL, in Unix milliseconds. They are 1 µs before those of the buckets. */
const readRange = () => {
  const { range, start = '', end = '' } = readSettings();
  return { range, start: Date.parse(start) + 1, end: Date.parse(end) + 1 };
};
const waitForZoom = () => tab.page.waitForURL(/range=custom/);

describe('time range', () => {
  test('dragging over a chart zooms all views, and Back and Forward undo and redo it', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=busy-market&range=1day');
    const { rows } = await queryApi('functions.invocation-stats', {
      project: 'busy-market',
      interval: '1day',
    });
    const total = `of ${sumColumn(rows, 'count').toLocaleString('en-GB')} invocations`;
    await page.getByText(total, { exact: true }).waitFor();
    await drag(invocations(), 0.3, 0.5);
    await waitForZoom();
    const { start, end } = readRange();
    const hours = (end - start) / 3_600_000;
    expect(hours).toBeGreaterThanOrEqual(5);
    expect(hours).toBeLessThanOrEqual(7);
    const zoomed = rows.filter(({ timestamp }) => {
      const ms = Number(timestamp) / 1000;
      return ms >= start && ms < end;
    });
    const zoomedTotal = `of ${sumColumn(zoomed, 'count').toLocaleString('en-GB')} invocations`;
    await page.getByText(zoomedTotal, { exact: true }).waitFor();
    await tab.screenshot('functions-zoomed');
    await page.reload();
    await page.getByText(zoomedTotal, { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Logs', exact: true }).click();
    await page.locator('.log-row').first().waitFor();
    expect(readRange()).toEqual({ range: 'custom', start, end });
    const times = await page
      .locator('.log-row time')
      .evaluateAll(elements => elements.map(element => Date.parse(element.getAttribute('datetime') ?? '')));
    expect(times.filter(time => time < start || time >= end)).toEqual([]);
    await page.goBack();
    await page.getByText(zoomedTotal, { exact: true }).waitFor();
    await page.goBack();
    await page.getByText(total, { exact: true }).waitFor();
    expect(await page.getByRole('radio', { name: 'The last day' }).isChecked()).toBe(true);
    await page.goForward();
    await page.getByText(zoomedTotal, { exact: true }).waitFor();
  });

  test('a range in the last hour loads minutes instead of hours, and z zooms out', async () => {
    const { page } = tab;
    const at = (minutes: number) =>
      new Date(Date.now() - minutes * 60_000 - 1).toISOString().replace('Z', '999Z');
    const range = new URLSearchParams({ range: 'custom', start: at(30), end: at(10) });
    await tab.goTo(`?view=functions&project=busy-market&${range}`);
    await expect.poll(() => queries().at(-1)?.url.searchParams.get('interval')).not.toBe('1day');
    const { start, end } = readRange();
    await page.keyboard.press('z');
    await expect.poll(() => readRange().start).toBe(start - (end - start));
    await page.getByRole('button', { name: 'Zoom out' }).click();
    await expect.poll(() => readRange().start).toBeLessThan(start - 2 * (end - start));
  });

  test('Shift and the arrow keys select buckets, and Enter zooms to them', async () => {
    const { page } = tab;
    await tab.goTo('?view=usage&project=busy-market&range=7day');
    await plot(/^Requests/).focus();
    for (const key of ['Home', 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowRight', 'Enter'])
      await page.keyboard.press(key);
    await waitForZoom();
    const { start, end } = readRange();
    expect((end - start) / DAY_MS).toBe(3);
    expect(new Date(start).getUTCHours()).toBe(0);
  });

  test('the range is kept when the view and the project change', async () => {
    const { page } = tab;
    await tab.goTo('?view=usage&project=busy-market');
    await expect.poll(() => readSettings()['range']).toBe('1hr');
    await page.keyboard.press('t');
    await page.keyboard.press('ArrowRight');
    await page.waitForURL(/range=1day/);
    for (const name of ['Functions', 'Logs', 'errors.hourly']) {
      await page.getByRole('link', { name, exact: true }).click();
      await expect.poll(() => readSettings()['range']).toBe('1day');
    }
    await page.getByLabel('Project').fill('slow-river');
    await page.getByLabel('Project').press('Enter');
    await page.waitForURL(/project=slow-river/);
    expect(readSettings()['range']).toBe('1day');
  });

  test('dragging over a chart of a custom endpoint zooms all views', async () => {
    const { page } = tab;
    await tab.goTo('?view=endpoint.errors.hourly&project=busy-market');
    await drag(page.locator('.plot').first(), 0.3, 0.6);
    await waitForZoom();
    const { start, end } = readRange();
    await page.getByRole('link', { name: 'Functions' }).click();
    await page.waitForURL(/view=functions/);
    expect(readRange()).toEqual({ range: 'custom', start, end });
  });

  test('a view says what it does not have of the range', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=busy-market&range=all');
    await page.getByText('This view has the last 7 days.').waitFor();
    const at = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
    const range = new URLSearchParams({ range: 'custom', start: at(6), end: at(5) });
    await tab.goTo(`?view=usage&project=busy-market&${range}`);
    await page.getByText('Each bucket is a whole day; shorter ones exist for the last hour.').waitFor();
    await tab.goTo('?view=usage&project=busy-market&range=1hr');
    await findBox(plot(/^Requests/));
    expect(await page.getByText('Each bucket is').isVisible()).toBe(false);
  });

  test('links of earlier versions show their interval and zoom', async () => {
    await tab.goTo('?view=usage&project=busy-market&interval=daily');
    await expect
      .poll(() => readSettings())
      .toEqual({
        view: 'usage',
        project: 'busy-market',
        range: '7day',
      });
    await tab.goTo(
      '?view=functions&project=busy-market&interval=1day&zoom=2026-11-14T09:00:00.000Z/2026-11-14T10:00:00.000Z',
    );
    await expect
      .poll(() => readSettings())
      .toMatchObject({
        range: 'custom',
        start: '2026-11-14T09:00:00.000Z',
        end: '2026-11-14T10:00:00.000Z',
      });
  });
});

describe('logs of a bar', () => {
  /** Clicks into a bar, at a fraction of the width of the chart, and some pixels above its lower edge. */
  const clickBar = async (page: Page, at: number, pixels: number) => {
    const { x, y, width, height } = await findBox(page.locator('.plot').first());
    await page.mouse.click(x + width * at, y + height - pixels);
    await page.waitForURL(/view=logs/);
  };

  test('a click above the bars opens all log records of the bucket', async () => {
    const { page } = tab;
    await tab.goTo('?view=usage&project=busy-market&range=7day');
    const { height } = await findBox(plot(/^Requests/));
    await clickBar(page, 0.55, height - 2); // the fifth of eight days
    await page.locator('.log-row').first().waitFor();
    const { start = '', end = '', range } = readSettings();
    expect(range).toBe('custom');
    expect(start).toMatch(/T23:59:59\.999999Z$/);
    expect(Date.parse(end) - Date.parse(start)).toBe(DAY_MS);
    const times = await page
      .locator('.log-row time')
      .evaluateAll(elements => elements.map(element => element.getAttribute('datetime') ?? ''));
    expect(times.filter(time => time <= start || time > end)).toEqual([]);
  });

  test('a click on a bar opens what the bar shows: red opens the errors', async () => {
    const other = await openTab({ token: inject('exploreToken') });
    const { page } = other;
    const read = () => Object.fromEntries(new URL(page.url()).searchParams);
    await other.goTo('?view=functions&project=stormy-harbor&range=1day');
    const { rows } = await queryApi('functions.invocation-stats', {
      project: 'stormy-harbor',
      interval: '1day',
    });
    const times = rows.map(row => Number(row['timestamp']));
    const errors = rows.map(row => Number(row['error_count']));
    const firstHour = Math.floor((Date.now() - DAY_MS) / HOUR_MS);
    const hour = Number(times[errors.indexOf(Math.max(...errors))]) / 1000 / HOUR_MS;
    await clickBar(page, (hour - firstHour + 0.5) / 25, 3); // the bar of the demo's incident
    expect(read()).toMatchObject({ kind: 'function_edge', query: 'status:>=400', range: 'custom' });
    await page.locator('.log-row .status').first().waitFor();
    const statuses = await page.locator('.log-row .status').allTextContents();
    expect(statuses.filter(status => Number(status) < 400)).toEqual([]);
    await other.goTo('?view=usage&project=busy-market&range=7day');
    await clickBar(page, 0.55, 3);
    expect(read()).toMatchObject({ kind: 'edge', query: 'path:*/rest*' });
    await page.locator('.log-row').first().waitFor();
    await other.close();
  });

  test('Enter opens the log records of the bucket that the arrow keys have reached', async () => {
    const { page } = tab;
    await tab.goTo('?view=usage&project=busy-market&range=1hr');
    await plot(/^Requests/).focus();
    for (const key of ['End', 'ArrowLeft', 'Enter']) await page.keyboard.press(key);
    await page.waitForURL(/view=logs/);
    const { start = '', end = '' } = readSettings();
    expect(Date.parse(end) - Date.parse(start)).toBe(60_000);
  });

  test('a bucket that is days old opens its log records, even without logs.all', async () => {
    const other = await openTab({ token: inject('searchToken') });
    const { page } = other;
    await other.goTo('?view=functions&project=busy-market&range=7day');
    await page.getByRole('img', { name: /^Invocations/ }).focus();
    const tooltip = page.locator('.tooltip').first();
    await page.keyboard.press('Home');
    do await page.keyboard.press('ArrowRight');
    while ((await tooltip.textContent())?.includes('Succeeded0'));
    await page.keyboard.press('Enter');
    await page.waitForURL(/view=logs/);
    await page.locator('.log-row').first().waitFor();
    await other.close();
  });
});

/**
 * Sends ten requests of the project `steady` for each of the eight days of the window `daily`, so that all bars have the same
 * height at any time of the day. In the last minutes of a day, waits for the next one.
 */
async function sendSteadyRequests(): Promise<void> {
  const leftOfDay = DAY_MS - (Date.now() % DAY_MS);
  if (leftOfDay < 3 * 60_000) await sleep(leftOfDay + 1_000);
  const now = Date.now();
  const startOfDay = now - (now % DAY_MS);
  const noons = Array.from({ length: 6 }, (_, i) => startOfDay - (i + 0.5) * DAY_MS);
  const times = [now - 7 * DAY_MS + 2 * 60_000, ...noons, now]; // the window moves on until the page is loaded
  const records = times.flatMap((time, day) =>
    Array.from({ length: 10 }, (_, i) => ({
      ...{ project: 'steady', id: `steady-${day}-${i}`, timestamp: new Date(time).toISOString() },
      ...{ message: 'request', metadata: { request: { method: 'GET', path: '/rest/v1/items' } } },
    })),
  );
  await sendLogs('edge', records);
  let attempt = 0;
  const countAll = async () => {
    const project = `steady|attempt-${attempt++}`; // another pattern is another cache entry
    return sumColumn(
      (await queryApi('usage.api-counts', { project, interval: 'daily' })).rows,
      'total_rest_requests',
    );
  };
  await expect.poll(countAll).toBe(80);
}

describe('what a chart shows', () => {
  test('the cursor of one chart is shared with the other charts of the view', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=busy-market&range=1hr');
    const { x, y, width, height } = await findBox(invocations());
    await page.mouse.move(x + width / 2, y + height / 2);
    await expect.poll(() => page.locator('.tooltip:visible').count()).toBe(3);
    const times = await page.locator('.tooltip:visible strong').allTextContents();
    expect(new Set(times).size).toBe(1);
    await page.mouse.move(x, y - 60);
    await expect.poll(() => page.locator('.tooltip:visible').count()).toBe(0);
    await plot(/^Execution times/).focus();
    await page.keyboard.press('End');
    expect(await page.locator('.tooltip:visible').count()).toBe(3);
  });

  test('the first and the last bucket of a window are hatched, because they are incomplete', {
    timeout: 300_000,
  }, async () => {
    const { page } = tab;
    await sendSteadyRequests();
    await tab.goTo('?view=usage&project=steady&range=7day');
    await findBox(plot(/^Requests/));
    await page.getByText('incomplete', { exact: true }).waitFor();
    await tab.screenshot('usage-hatched');
    // Counts the changes between transparent and opaque pixels in the lowest part of each of the eight bars.
    const changes = await page.evaluate<number[]>(`(() => {
      const canvas = document.querySelector('canvas');
      const over = document.querySelector('.u-over').getBoundingClientRect();
      const frame = canvas.getBoundingClientRect();
      const scale = canvas.width / frame.width;
      const y = Math.round((over.bottom - frame.top - 4) * scale);
      const { data } = canvas.getContext('2d').getImageData(0, y, canvas.width, 1);
      return Array.from({ length: 8 }, (_, i) => {
        const first = Math.round((over.left - frame.left + (over.width * (i + 0.3)) / 8) * scale);
        const last = first + Math.round(over.width * 0.05 * scale);
        let changes = 0;
        for (let x = first; x < last; x++)
          if (data[x * 4 + 3] > 127 !== data[x * 4 + 7] > 127) changes += 1;
        return changes;
      });
    })()`);
    expect(changes.slice(1, -1)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(changes[0]).toBeGreaterThan(3);
    expect(changes[7]).toBeGreaterThan(3);
  });

  test('5 minutes are shown in steps of 5 s without percentiles, and a zoom shows seconds with percentiles', async () => {
    const { page } = tab;
    await sendRecentInvocations('recent-chart');
    await tab.goTo('?view=functions&project=recent-chart&range=5min');
    await findBox(invocations());
    await page.getByText('Each point is 5 seconds.').waitFor();
    const entries = page.locator('.legend-name');
    expect(await entries.allTextContents()).toEqual([
      'Succeeded',
      'Errors',
      'Error rate',
      'Min',
      'Avg',
      'Max',
    ]);
    await invocations().focus();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    expect(await page.locator('.tooltip strong').first().textContent()).toMatch(
      /^\d\d:\d\d:\d[05] – \d\d:\d\d:\d[05]$/,
    );
    await page.keyboard.press('Escape');
    await drag(invocations(), 0.3, 0.6);
    await page.locator('.legend-name', { hasText: 'p95' }).waitFor();
    expect(await page.getByText('Each point is').isVisible()).toBe(false);
  });

  test('the legend does not show a percentile of all buckets, but the highest one of a bucket', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=busy-market&range=1day');
    const { rows } = await queryApi('functions.invocation-stats', {
      project: 'busy-market',
      interval: '1day',
    });
    const highest = Math.max(...rows.map(row => Number(row['p95_execution_time'])));
    const entry = page.locator('[data-series="p95_execution_time"]');
    expect(await entry.locator('.legend-value').textContent()).toMatch(/^up to /);
    expect(
      Number.parseFloat((await entry.locator('.legend-value').textContent())?.slice(6) ?? ''),
    ).toBeCloseTo(highest >= 1000 ? highest / 1000 : highest, 0);
    expect(await entry.locator('.legend-description').textContent()).toMatch(/^highest p95 of one hour, at /);
  });

  test('the error rate is that of all shown invocations', async () => {
    const { page } = tab;
    await tab.goTo('?view=functions&project=stormy-harbor&range=1day');
    const { rows } = await queryApi('functions.invocation-stats', {
      project: 'stormy-harbor',
      interval: '1day',
    });
    const [errors, count] = [sumColumn(rows, 'error_count'), sumColumn(rows, 'count')];
    expect(errors).toBeGreaterThan(0);
    const share = (errors / count).toLocaleString('en-GB', { style: 'percent', maximumFractionDigits: 1 });
    const entry = page.locator('[data-series="error_rate"]');
    expect(await entry.locator('.legend-value').textContent()).toBe(share);
    await plot(/^Share of invocations with errors/).waitFor();
  });
});
