// Checks a page against the accessibility rules of axe, and how it looks in narrow and wide windows and in both themes.
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { DESKTOP, type Tab } from './tab.ts';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** One line for each violation. `onlyColors` checks the contrast alone, for pages that differ in colours only. */
export async function findAccessibilityViolations(page: Page, onlyColors = false): Promise<string[]> {
  const isLoaded = await page.evaluate<boolean>("typeof axe === 'object'");
  if (!isLoaded) await page.evaluate(`${axe.source}; undefined`);
  const runOnly = JSON.stringify(onlyColors ? ['color-contrast'] : RULES);
  return page.evaluate<string[]>(`
    axe.run(document, { runOnly: ${runOnly} }).then(({ violations }) =>
      violations.flatMap(({ id, impact, nodes }) =>
        nodes.map(({ target, failureSummary }) => impact + ' ' + id + ' at ' + target.join(' ') + ': ' + failureSummary)))`);
}

const WIDTHS = [390, 1920, DESKTOP.width];

/** Checks that the page fits the width and is accessible, for all widths in both themes. Saves screenshots. */
export async function checkAppearance({ page, screenshot }: Tab, name: string): Promise<void> {
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ ...DESKTOP, width });
      await expect.poll(() => page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      await screenshot(`${name}-${width}-${colorScheme}`);
      // The themes differ in colours only.
      expect(await findAccessibilityViolations(page, colorScheme === 'dark')).toEqual([]);
    }
  }
}
