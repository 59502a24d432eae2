// Checks that every view fits the width and is accessible, in light mode, in dark mode and on a phone. Saves screenshots in
// test/browser/output.
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { findAccessibilityViolations } from './support/accessibility.ts';
import { openTab, PHONE, type Tab } from './support/tab.ts';

const VIEWS = {
  functions: '?view=functions&project=stormy-harbor&interval=1hr',
  usage: '?view=usage&project=busy-market&interval=daily',
  logs: '?view=logs&project=stormy-harbor&tier=PRO&range=1hr',
  endpoint: '?view=endpoint.errors.hourly&project=busy-market',
  empty: '?view=functions&project=nobody&interval=1hr',
  error: '?view=usage&project=(&interval=minutely',
};

/** These use the same components as VIEWS, so light mode is enough. */
const VARIANTS = {
  'functions-5min': '?view=functions&project=busy-market&interval=5min',
  'functions-1day': '?view=functions&project=busy-market&interval=1day',
  'functions-7day': '?view=functions&project=slow-river&interval=7day&function=monthly-report',
  'usage-minutely': '?view=usage&project=busy-market&interval=minutely',
  'usage-hourly': '?view=usage&project=busy-market&interval=hourly',
  'endpoint-table': '?view=endpoint.paths.top&project=busy-market',
  'no-project': '?view=logs',
};

const MODES = {
  light: {},
  dark: { colorScheme: 'dark' },
  phone: { viewport: PHONE, deviceScaleFactor: 2, hasTouch: true, isMobile: true },
} as const;

const LOADED =
  '.query-panel:not([aria-busy]) > :is(.stack, .logs, .query-panel-message):visible:not(:has(.loading))';

describe.each(Object.entries(MODES))('appearance: %s', (mode, options) => {
  let tab: Tab;
  beforeAll(async () => {
    tab = await openTab({ expectedStatuses: [400], ...options });
  });
  afterAll(() => tab.close());

  const render = async (name: string, search: string) => {
    await tab.goTo(search);
    await tab.page.locator(LOADED).waitFor();
    if (name === 'logs') await tab.page.locator('.log-toggle').first().click();
    await tab.screenshot(`${name}-${mode}`);
    expect(await tab.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  };

  test('the sign-in page has no accessibility violations', async () => {
    await tab.goTo('');
    await tab.page.getByLabel('API token').waitFor();
    await tab.screenshot(`sign-in-${mode}`);
    expect(await findAccessibilityViolations(tab.page, mode === 'dark')).toEqual([]);
    await tab.page.getByLabel('API token').fill(inject('token'));
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('navigation').waitFor();
  });

  test.each(Object.entries(VIEWS))(
    'the view %s fits the width and has no accessibility violations',
    async (name, search) => {
      await render(name, search);
      expect(await findAccessibilityViolations(tab.page, mode === 'dark')).toEqual([]);
    },
  );

  if (mode === 'light') test.each(Object.entries(VARIANTS))('the view %s fits the width', render);
});

test('charts change their colours when the system switches to dark mode', async () => {
  const tab = await openTab({ token: inject('token') });
  const { page } = tab;
  await tab.goTo(VIEWS.usage);
  await page.locator(LOADED).waitFor();
  const readCanvas = () => page.evaluate<string>("document.querySelector('canvas').toDataURL()");
  const light = await readCanvas();
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(readCanvas).not.toBe(light);
  await tab.close();
});
