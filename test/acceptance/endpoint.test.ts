import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { documentedEndpoint } from '../support/custom-endpoints.ts';
import { createTempDirectory, onlyLine, runDendro, spawnDendro } from '../support/process.ts';

let directory: ReturnType<typeof createTempDirectory>;
beforeEach(() => {
  directory = createTempDirectory();
});
afterEach(() => directory.remove());

const endpoints = () => join(directory.path, 'my-endpoints');
const run = (...args: string[]) => runDendro([...args, '--endpoints', endpoints()]);
const definition = () => join(endpoints(), 'errors.by-path', 'endpoint.yaml');

test('dendro endpoint new creates a folder that passes check, and whose example passes', async () => {
  expect((await run('endpoint', 'new', 'errors.by-path')).stdout).toContain('my-endpoints/errors.by-path');
  expect(readFileSync(definition(), 'utf8')).toContain("name: 'errors.by-path'");
  expect((await run('check', '--data', join(directory.path, 'data'))).stdout).toMatch(
    /errors\.by-path .*\n[\s\S]* endpoints, no problems found/,
  );
  expect(await run('endpoint', 'test')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/1 passed, 0 failed\n$/),
  });
  const unlisted = ['--data', join(directory.path, 'data'), '--project', 'shop', '--param', 'period=week'];
  expect(await run('query', 'errors.by-path', ...unlisted)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^dendro: period must be one of hour, day\n$/m),
  });
  const repeated = await run('endpoint', 'new', 'errors.by-path');
  expect(repeated).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('already exists; choose another name'),
  });
});

test('dendro endpoint new reports that --endpoints is a file, not that the endpoint already exists', async () => {
  writeFileSync(endpoints(), '');
  const outcome = await run('endpoint', 'new', 'errors.by-path');
  expect(outcome.code).toBe(1);
  expect(onlyLine(outcome)).toBe(
    `dendro: cannot create ${endpoints()}/errors.by-path: ENOTDIR: not a directory`,
  );
});

test('dendro endpoint test prints expected and returned rows of a failed example, and exits with 1', async () => {
  await run('endpoint', 'new', 'errors.by-path');
  writeFileSync(definition(), readFileSync(definition(), 'utf8').replace('count: 1 }', 'count: 2 }'));
  const { code, stdout, stderr } = await run('endpoint', 'test', 'errors.by-path');
  expect(code).toBe(1);
  expect(stdout).toContain(
    'FAILED  errors.by-path: Requests with a status from 400 on are counted by path.\n',
  );
  expect(stdout).toContain(
    'expected \n    {"path":"/orders","count":2}\n  returned \n    {"path":"/orders","count":1}\n',
  );
  expect(stderr).toBe('dendro: 1 of 1 examples failed\n');
});

test('dendro endpoint test leaves no temporary directory, also if its store cannot be opened', async () => {
  const temporary = join(directory.path, 'tmp');
  mkdirSync(temporary);
  await run('endpoint', 'new', 'errors.by-path');
  const args = ['endpoint', 'test', '--endpoints', endpoints(), '--memory-limit'];
  for (const [limit, code] of [
    ['500MB', 0],
    ['1KB', 1],
  ] as const) {
    const outcome = await spawnDendro([...args, limit], { env: { TMPDIR: temporary } });
    expect([outcome.code, readdirSync(temporary)]).toEqual([code, []]);
  }
});

test('dendro endpoint test reports a rejected record, a wrong parameter and a wrong time of an example', async () => {
  const { yaml, sql } = documentedEndpoint();
  mkdirSync(join(endpoints(), 'errors.by-path'), { recursive: true });
  writeFileSync(join(endpoints(), 'errors.by-path', 'duckdb.sql'), sql);
  writeFileSync(
    definition(),
    `${yaml}
examples:
  - { title: No project., now: 2026-01-01, records: { edge: [{ event_message: a }] }, parameters: { project: p }, rows: [] }
  - { title: No parameter., now: 2026-01-01, records: {}, rows: [] }
  - { title: No time., now: today, records: {}, rows: [] }
`,
  );
  const { code, stdout } = await run('endpoint', 'test');
  expect(code).toBe(1);
  expect(stdout).toContain('  record 1 of kind edge: ');
  expect(stdout).toContain('  project is required');
  expect(stdout).toContain('  now: today is not a timestamp; allowed: ');
  expect(stdout).toContain('0 passed, 3 failed');
});
