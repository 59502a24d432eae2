import { afterEach, describe, expect, inject, test } from 'vitest';
import { PHONE, type Visitor, visit } from './support/visitor.ts';

// Every view in light, dark and on a phone, left in test/browser/output for a person to look at.

const VIEWS = {
  'functions-incident': '?view=functions&project=stormy-harbor&interval=1hr',
  'functions-slow': '?view=functions&project=slow-river&interval=7day&function=monthly-report',
  'functions-5min': '?view=functions&project=busy-market&interval=5min',
  'functions-1day': '?view=functions&project=busy-market&interval=1day',
  'usage-minutely': '?view=usage&project=busy-market&interval=minutely',
  'usage-hourly': '?view=usage&project=busy-market&interval=hourly',
  'usage-daily': '?view=usage&project=busy-market&interval=daily',
  logs: '?view=logs&project=stormy-harbor&tier=PRO',
  endpoint: '?view=endpoint.errors.hourly&project=busy-market',
  'endpoint-table': '?view=endpoint.paths.top&project=busy-market',
  empty: '?view=functions&project=nobody&interval=1hr',
  fault: '?view=usage&project=(&interval=minutely',
  'no-project': '?view=logs',
};

const LOOKS = {
  light: {},
  dark: { colorScheme: 'dark' },
  phone: { viewport: PHONE, deviceScaleFactor: 2, hasTouch: true, isMobile: true },
} as const;

describe.each(Object.entries(LOOKS))('%s', (look, options) => {
  let visitor: Visitor;
  afterEach(() => visitor.leave());

  test.each(Object.entries(VIEWS))('%s is drawn, and fits the width', async (name, address) => {
    visitor = await visit({ token: inject('token'), expectedStatuses: [400], ...options });
    const { page } = visitor;
    await visitor.goTo(address);
    await page
      .locator('.panel:not([aria-busy]) > :is(.stack, .logs, .panel-message):visible:not(:has(.loading))')
      .waitFor();
    if (name === 'logs') await page.getByRole('button', { expanded: false }).first().click();
    await visitor.screenshot(`${name}-${look}`);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  });

  test('the sign-in is drawn', async () => {
    visitor = await visit(options);
    await visitor.goTo('');
    await visitor.page.getByLabel('API token').waitFor();
    await visitor.screenshot(`sign-in-${look}`);
  });
});
