// Takes the screenshots for the README and the docs: the console with demo data, in Debian's Chromium. Requires a build.
// Usage: node scripts/screenshots.mjs [directory]; the default is docs/images.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { ensurePrograms, findProgram } from './debian.mjs';

const root = join(import.meta.dirname, '..');
const directory = process.argv[2] ?? join(root, 'docs', 'images');

const WIDTH = 1180;
const HEIGHT = 760;

const SCREENSHOTS = [
  { name: 'overview', search: '?view=overview&project=stormy-harbor&range=1hr', height: 1180 },
  {
    name: 'logs',
    search: '?view=logs&project=stormy-harbor&kind=edge&range=1hr&query=path:/rest*+-status:200',
    height: 1000,
    openRecord: true,
  },
  {
    name: 'compare',
    search:
      '?view=logs&project=stormy-harbor&kind=edge&range=1hr&query=path:/rest*+status:>%3D500&tab=compare',
  },
];

if (ensurePrograms({ chromium: 'chromium' }).length > 0) process.exit(1);
mkdirSync(directory, { recursive: true });
const demo = spawn(join(root, 'bin', 'dendro'), ['demo', '--port', '0', '--internal-port', '0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const link = new URL(await findLink(demo));
  const browser = await chromium.launch({ executablePath: findProgram('chromium'), args: ['--no-sandbox'] });
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({
      viewport: { width: WIDTH, height: HEIGHT },
      colorScheme,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
      deviceScaleFactor: 1.5,
    });
    const page = await context.newPage();
    await page.goto(link.href);
    for (const { name, search, height = HEIGHT, openRecord = false } of SCREENSHOTS) {
      await page.setViewportSize({ width: WIDTH, height });
      await page.goto(`${link.origin}/${search}`);
      await page
        .locator(':is(.query-panel:not([aria-busy]) :is(.chart, .log-row, .difference), .kind-list):visible')
        .first()
        .waitFor();
      if (name === 'overview') await page.locator('.tile').nth(3).waitFor();
      await page.locator('[data-series]').first().waitFor();
      if (openRecord) await page.locator('.log-row:has(.status-5) .log-toggle').first().click();
      await page.evaluate('scrollTo(0, 0)');
      await page.screenshot({ path: join(directory, `${name}-${colorScheme}.png`) });
    }
    await context.close();
  }
  await browser.close();
} finally {
  demo.kill('SIGTERM');
}

/** Waits until the demo prints the link to the console. */
function findLink(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.setEncoding('utf8').on('data', text => {
      output += text;
      const found = /(http\S+#token=\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', code => reject(new Error(`the demo exited with code ${code}`)));
  });
}
