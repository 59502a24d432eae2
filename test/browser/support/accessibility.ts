// Checks a page against the accessibility rules of axe.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

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
