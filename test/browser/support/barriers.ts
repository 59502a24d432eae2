// What axe finds on a page that would keep people out.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Each as one line: which rule, and where. Where only the colours differ, only these need another look. */
export async function findBarriers(page: Page, isOnlyColors = false): Promise<string[]> {
  const isThere = await page.evaluate<boolean>("typeof axe === 'object'");
  if (!isThere) await page.evaluate(`${axe.source}; undefined`);
  const runOnly = JSON.stringify(isOnlyColors ? ['color-contrast'] : RULES);
  return page.evaluate<string[]>(`
    axe.run(document, { runOnly: ${runOnly} }).then(({ violations }) =>
      violations.flatMap(({ id, impact, nodes }) =>
        nodes.map(({ target, failureSummary }) => impact + ' ' + id + ' at ' + target.join(' ') + ': ' + failureSummary)))`);
}
