// Checks that the search of the logs view fits the width and is accessible: in light and dark mode, on a phone and on a wide screen.
// Saves screenshots in test/browser/output.
import { describe, expect, inject, test } from 'vitest';
import { findAccessibilityViolations } from './support/accessibility.ts';
import { openTab, PHONE } from './support/tab.ts';

const MODES = {
  light: {},
  dark: { colorScheme: 'dark' },
  phone: { viewport: PHONE, deviceScaleFactor: 2, hasTouch: true, isMobile: true },
  wide: { viewport: { width: 1920, height: 1000 } },
} as const;

describe.each(Object.entries(MODES))('search: %s', (mode, options) => {
  test('the search fits the width and has no accessibility violations', async () => {
    const tab = await openTab({ token: inject('exploreToken'), expectedStatuses: [400], ...options });
    const { page } = tab;
    const check = async (name: string) => {
      await tab.screenshot(`logs-${name}-${mode}`);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      // A wide screen differs from a normal one in its width only.
      if (mode !== 'wide') expect(await findAccessibilityViolations(page, mode === 'dark')).toEqual([]);
    };
    await tab.goTo('?view=logs&project=stormy-harbor&tier=PRO&range=1hr');
    await page.locator('.log-row').first().waitFor();
    await page.locator('.histogram [data-series]').first().waitFor();
    await page.locator('.log-toggle').nth(1).click();
    await page.locator('.tree .value').first().click();
    await check('search');
    await page.getByRole('combobox', { name: 'Search' }).click();
    await page.keyboard.type('status:');
    await page.locator('.search-box').getByRole('option').first().waitFor();
    await check('suggestions');
    await tab.goTo(`?view=logs&project=search&kind=postgres&query=${encodeURIComponent('status:500 "a')}`);
    await page.getByRole('alert').waitFor();
    await check('invalid-search');
    await tab.close();
  });
});
