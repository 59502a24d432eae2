// Runs the browser tests in Debian's Chromium. Requires a build. Arguments are passed on to vitest.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ensurePrograms, findProgram } from './debian.mjs';

if (ensurePrograms({ chromium: 'chromium' }).length > 0) process.exit(1);
const { status } = spawnSync(
  process.execPath,
  [
    join('node_modules', 'vitest', 'vitest.mjs'),
    ...['run', '--project', 'browser', ...process.argv.slice(2)],
  ],
  {
    cwd: join(import.meta.dirname, '..'),
    env: { ...process.env, CHROMIUM: findProgram('chromium') },
    stdio: ['ignore', 'inherit', 'inherit'],
  },
);
process.exitCode = status ?? 1;
