// Provides a ClickHouse server to the tests: the one of DENDRO_TEST_CLICKHOUSE, such as
// clickhouse://user:password@host:8123, or the WebAssembly server in ./fixture, started for this run.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { runNpm } from '../../scripts/npm.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** A URL without a database: tests create their own. Undefined if the embedded store is tested. */
    clickhouse: string;
  }
}

const FIXTURE = join(import.meta.dirname, 'fixture');
const NODE = join(FIXTURE, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');

export default async function setup(project: TestProject): Promise<() => void> {
  const url = process.env['DENDRO_TEST_CLICKHOUSE'];
  if (url !== undefined && url !== '') {
    if (!/^clickhouse:\/\/[^/?]+\/?$/.test(url))
      throw new Error(
        'DENDRO_TEST_CLICKHOUSE must be like clickhouse://user:password@host:8123: one server, without TLS because tests ' +
          'put a proxy in between, and without a database because tests create their own',
      );
    process.stderr.write('NOT TESTED: the cluster, whose tests start their own servers\n');
    project.provide('clickhouse', url);
    return () => {};
  }
  install();
  const child = spawn(NODE, ['--liftoff-only', 'server.mjs'], {
    cwd: FIXTURE,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const port = await readPort(child);
  project.provide('clickhouse', `clickhouse://dendro:test-password@127.0.0.1:${port}`);
  return () => void child.stdin?.end();
}

/** Installs 115 MB from npm into the fixture directory, once per checkout. */
function install(): void {
  if (existsSync(NODE)) return;
  runNpm(['ci', '--ignore-scripts'], FIXTURE);
  if (!existsSync(NODE))
    throw new Error(
      `the ClickHouse fixture cannot be installed. It runs on Linux x64 and arm64; this is ${process.platform} ` +
        `${process.arch}. Set DENDRO_TEST_CLICKHOUSE to the URL of a server instead.`,
    );
}

async function readPort(child: ChildProcess): Promise<number> {
  const exited = once(child, 'exit').then(() => {
    throw new Error('the ClickHouse fixture exited before it was ready');
  });
  const [line] = await Promise.race([once(child.stdout ?? child, 'data'), exited]);
  return (JSON.parse(String(line)) as { port: number }).port;
}
