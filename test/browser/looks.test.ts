import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { findBarriers } from './support/barriers.ts';
import { PHONE, type Visitor, visit } from './support/visitor.ts';

// Every view in light, dark and on a phone, left in test/browser/output for a person to look at, and gone over by axe.

const VIEWS = {
  functions: '?view=functions&project=stormy-harbor&interval=1hr',
  usage: '?view=usage&project=busy-market&interval=daily',
  logs: '?view=logs&project=stormy-harbor&tier=PRO&range=15min',
  endpoint: '?view=endpoint.errors.hourly&project=busy-market',
  empty: '?view=functions&project=nobody&interval=1hr',
  fault: '?view=usage&project=(&interval=minutely',
};

/** Built from the same parts: a picture of each is enough. */
const VARIANTS = {
  'functions-5min': '?view=functions&project=busy-market&interval=5min',
  'functions-1day': '?view=functions&project=busy-market&interval=1day',
  'functions-7day': '?view=functions&project=slow-river&interval=7day&function=monthly-report',
  'usage-minutely': '?view=usage&project=busy-market&interval=minutely',
  'usage-hourly': '?view=usage&project=busy-market&interval=hourly',
  'endpoint-table': '?view=endpoint.paths.top&project=busy-market',
  'no-project': '?view=logs',
};

const LOOKS = {
  light: {},
  dark: { colorScheme: 'dark' },
  phone: { viewport: PHONE, deviceScaleFactor: 2, hasTouch: true, isMobile: true },
} as const;

const DRAWN = '.panel:not([aria-busy]) > :is(.stack, .logs, .panel-message):visible:not(:has(.loading))';

describe.each(Object.entries(LOOKS))('%s', (look, options) => {
  let visitor: Visitor;
  beforeAll(async () => {
    visitor = await visit({ expectedStatuses: [400], ...options });
  });
  afterAll(() => visitor.leave());

  const draw = async (name: string, address: string) => {
    await visitor.goTo(address);
    await visitor.page.locator(DRAWN).waitFor();
    if (name === 'logs') await visitor.page.locator('.log-opener').first().click();
    await visitor.screenshot(`${name}-${look}`);
    expect(await visitor.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  };

  test('the sign-in is drawn, and has no barriers', async () => {
    await visitor.goTo('');
    await visitor.page.getByLabel('API token').waitFor();
    await visitor.screenshot(`sign-in-${look}`);
    expect(await findBarriers(visitor.page, look === 'dark')).toEqual([]);
    await visitor.page.getByLabel('API token').fill(inject('token'));
    await visitor.page.keyboard.press('Enter');
    await visitor.page.getByRole('navigation').waitFor();
  });

  test.each(Object.entries(VIEWS))(
    '%s is drawn, fits the width, and has no barriers',
    async (name, address) => {
      await draw(name, address);
      expect(await findBarriers(visitor.page, look === 'dark')).toEqual([]);
    },
  );

  if (look === 'light') test.each(Object.entries(VARIANTS))('%s is drawn, and fits the width', draw);
});

test('a page that is open follows when the system turns dark', async () => {
  const visitor = await visit({ token: inject('token') });
  const { page } = visitor;
  await visitor.goTo(VIEWS.usage);
  await page.locator(DRAWN).waitFor();
  const picture = () => page.evaluate<string>("document.querySelector('canvas').toDataURL()");
  const light = await picture();
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(picture).not.toBe(light);
  await visitor.leave();
});
