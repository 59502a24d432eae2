// Makes the pictures that the README shows: the console on the demo, in Debian's Chromium. The program must be built.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { ensurePrograms, findProgram } from './debian.mjs';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs', 'images');

const PICTURES = [
  { name: 'functions', search: '?view=functions&project=stormy-harbor&interval=1hr' },
  { name: 'logs', search: `?view=logs&project=stormy-harbor&${duringTheIncident()}`, open: true },
];

if (ensurePrograms({ chromium: 'chromium' }).length > 0) process.exit(1);
mkdirSync(folder, { recursive: true });
const demo = spawn(join(root, 'bin', 'dendro'), ['demo', '--port', '0', '--internal-port', '0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const link = new URL(await findLink(demo));
  const browser = await chromium.launch({ executablePath: findProgram('chromium'), args: ['--no-sandbox'] });
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({
      viewport: { width: 1180, height: 760 },
      colorScheme,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
      deviceScaleFactor: 1.5,
    });
    const page = await context.newPage();
    await page.goto(link.href);
    for (const { name, search, open = false } of PICTURES) {
      await page.goto(`${link.origin}/${search}`);
      await page.locator('.panel:not([aria-busy]) :is(.chart, .log-line):visible').first().waitFor();
      if (open) await page.locator('.log-line:has(.status-5) .log-opener').first().click();
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    }
    await context.close();
  }
  await browser.close();
} finally {
  demo.kill('SIGTERM');
}

function duringTheIncident() {
  const minutesAgo = minutes => new Date(Date.now() - minutes * 60_000).toISOString();
  return new URLSearchParams({ range: 'custom', start: minutesAgo(60), end: minutesAgo(24) });
}

/** The console's address, once the demo has printed all that it prints. */
function findLink(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.setEncoding('utf8').on('data', text => {
      output += text;
      const found = /(http\S+#token=\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', code => reject(new Error(`the demo ended with ${code}`)));
  });
}
