// Checks that every view fits narrow and wide windows and is accessible in both themes. Saves screenshots in test/browser/output.
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { checkAppearance } from './support/accessibility.ts';
import { openTab, PHONE, type Tab } from './support/tab.ts';

const VIEWS = {
  functions: '?view=functions&project=stormy-harbor&range=1hr',
  usage: '?view=usage&project=busy-market&range=7day',
  logs: '?view=logs&project=stormy-harbor&range=1hr',
  endpoint: '?view=endpoint.errors.hourly&project=busy-market',
  empty: '?view=functions&project=nobody&range=1hr',
  error: '?view=usage&project=(&range=1hr',
};

/** These use the same components as VIEWS, so one look on a phone is enough. */
const VARIANTS = {
  'functions-5min': '?view=functions&project=busy-market&range=5min',
  'functions-1day': '?view=functions&project=busy-market&range=1day',
  'functions-7day': '?view=functions&project=slow-river&range=7day&function=monthly-report',
  'usage-minutely': '?view=usage&project=busy-market&range=1hr',
  'usage-hourly': '?view=usage&project=busy-market&range=1hr',
  'endpoint-table': '?view=endpoint.paths.top&project=busy-market',
  'no-project': '?view=logs',
};

const LOADED =
  '.query-panel:not([aria-busy]) > :is(.stack, .logs, .query-panel-message):visible:not(:has(.loading))';

describe('appearance', () => {
  let tab: Tab;
  beforeAll(async () => {
    tab = await openTab({ expectedStatuses: [400] });
  });
  afterAll(() => tab.close());

  test('the sign-in page fits every width and is accessible in both themes', async () => {
    await tab.goTo('');
    await tab.page.getByLabel('API token').waitFor();
    await checkAppearance(tab, 'sign-in');
    await tab.page.getByLabel('API token').fill(inject('token'));
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('navigation').waitFor();
  });

  test.each(Object.entries(VIEWS))(
    'the view %s fits every width and is accessible in both themes',
    async (name, search) => {
      await tab.goTo(search);
      await tab.page.locator(LOADED).waitFor();
      if (name === 'logs') await tab.page.locator('.log-toggle').first().click();
      await checkAppearance(tab, name);
    },
  );
});

test.each(Object.entries(VARIANTS))('the view %s fits the width', async (name, search) => {
  const tab = await openTab({ token: inject('token'), viewport: PHONE, hasTouch: true, isMobile: true });
  await tab.goTo(search);
  await tab.page.locator(LOADED).waitFor();
  await tab.screenshot(`${name}-phone`);
  expect(await tab.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  await tab.close();
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
