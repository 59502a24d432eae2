// Data directories of earlier releases (test/upgrade/README.md): opened by a server, and by servers that are killed meanwhile.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { reportFault, sized } from '../support/fault-report.ts';
import { createTempDirectory, runDendro } from '../support/process.ts';
import { kill, serve } from './server.ts';

const UPGRADE = join(import.meta.dirname, '../upgrade');
const readJson = (name: string) => JSON.parse(readFileSync(join(UPGRADE, name), 'utf8'));
const { embedded } = readJson('expected.json');
const expected020 = readJson('expected-0.2.0.json');
const unreleased = readJson('expected-0.3.0-unreleased.json');
type Contents = Record<string, { readonly count: number; readonly digest: string }>;
const RELEASES: readonly { version: string; token: string; kinds: Contents }[] = [
  { version: '0.1.0', token: embedded.tokens.platform, kinds: embedded.kinds },
  { version: '0.2.0', token: expected020.token, kinds: expected020.kinds },
  { version: '0.3.0-unreleased', token: unreleased.token, kinds: unreleased.kinds },
];

const KILLS_PER_RELEASE = sized(3, 25);
/** Of a start: the program is loaded, then it listens and converts the store. */
const [MIN_DELAY_MS, DELAY_RANGE_MS] = [150, 1_500];

/** Opens a directory of the release, at first with a server that is killed, and compares its content with what was sent. */
async function upgrade({ version, token, kinds }: (typeof RELEASES)[number], killAfterMs?: number) {
  const directory = createTempDirectory();
  try {
    execFileSync('tar', ['-xzf', join(UPGRADE, `embedded-${version}.tar.gz`), '-C', directory.path]);
    const args = ['--retention-days', '36500', '--endpoints', join(UPGRADE, 'endpoints')];
    if (killAfterMs !== undefined) {
      const { code } = await runDendro(['serve', '--data', directory.path, ...args], { killAfterMs });
      expect(code).toBeNull(); // killed
    }
    const server = await serve(directory.path, args);
    try {
      const url = `${server.url}/api/endpoints/query/upgrade.contents?project=any`;
      const { rows } = await fetchResponse(url, { headers: { 'X-API-KEY': token } });
      const found: Contents = Object.fromEntries(rows.map(({ kind, ...contents }) => [kind, contents]));
      return { ...difference(found, kinds), isUnchanged: isDeepStrictEqual(found, kinds) };
    } finally {
      await kill(server);
    }
  } finally {
    directory.remove();
  }
}

function difference(found: Contents, expected: Contents) {
  let [lost, duplicated] = [0, 0];
  for (const [kind, { count }] of Object.entries(expected)) {
    const change = (found[kind]?.count ?? 0) - count;
    if (change < 0) lost -= change;
    else duplicated += change;
  }
  return { lost, duplicated };
}

test.each(RELEASES)('a data directory of release $version is upgraded with every record', async release => {
  const { isUnchanged, ...counts } = await upgrade(release);
  const outcome = `every record is ${isUnchanged ? 'unchanged' : 'CHANGED'}, and the token is valid`;
  reportFault({ fault: 'upgrade of an old data directory', runs: 1, outcome, ...counts });
  expect(isUnchanged).toBe(true);
});

test.each(RELEASES)(
  'a data directory of release $version whose upgrade is killed has every record',
  async release => {
    for (let run = 0; run < KILLS_PER_RELEASE; run++) {
      const { isUnchanged, ...counts } = await upgrade(
        release,
        MIN_DELAY_MS + Math.random() * DELAY_RANGE_MS,
      );
      const outcome = `the next start finishes the upgrade, every record is ${isUnchanged ? 'unchanged' : 'CHANGED'}`;
      reportFault({ fault: 'kill -9 during an upgrade', runs: 1, outcome, ...counts });
      expect(isUnchanged).toBe(true);
    }
  },
);
