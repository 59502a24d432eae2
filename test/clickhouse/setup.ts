// The ClickHouse of the tests: the one that DENDRO_TEST_CLICKHOUSE names, such as
// clickhouse://user:password@host:8123, or else the engine of ./fixture, started for this run.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** An address without a database; every test makes one of its own. Absent where the embedded store is tested. */
    clickhouse: string;
  }
}

const FIXTURE = join(import.meta.dirname, 'fixture');
const NODE = join(FIXTURE, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');

export default async function setup(project: TestProject): Promise<() => void> {
  const given = process.env['DENDRO_TEST_CLICKHOUSE'];
  if (given !== undefined && given !== '') {
    if (!/^clickhouse:\/\/[^/?]+\/?$/.test(given))
      throw new Error(
        'DENDRO_TEST_CLICKHOUSE is written clickhouse://user:password@host:8123: one server, without TLS, since the tests ' +
          'stand between it and the program; without a database, since they make their own',
      );
    process.stderr.write('NOT TESTED HERE: a cluster, whose tests start servers of their own\n');
    project.provide('clickhouse', given);
    return () => {};
  }
  install();
  const child = spawn(NODE, ['--liftoff-only', 'server.mjs'], {
    cwd: FIXTURE,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const port = await readPort(child);
  project.provide('clickhouse', `clickhouse://dendro:of-the-tests@127.0.0.1:${port}`);
  return () => void child.stdin?.end();
}

/** Once for a checkout: 115 MB from npm, in a folder of its own. */
function install(): void {
  if (existsSync(NODE)) return;
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: FIXTURE,
    stdio: 'inherit',
  });
  if (status !== 0 || !existsSync(NODE))
    throw new Error(
      `the ClickHouse of the tests runs on Linux x64 and arm64, where npm has its Node; this is ${process.platform} ` +
        `${process.arch}. Set DENDRO_TEST_CLICKHOUSE to the address of a server instead.`,
    );
}

async function readPort(child: ChildProcess): Promise<number> {
  const ended = once(child, 'exit').then(() => {
    throw new Error('the ClickHouse of the tests ended before it was ready');
  });
  const [line] = await Promise.race([once(child.stdout ?? child, 'data'), ended]);
  return (JSON.parse(String(line)) as { port: number }).port;
}
