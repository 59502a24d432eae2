import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { writeEndpointFolders } from '../support/custom-endpoints.ts';
import { reportFault } from '../support/fault-report.ts';
import { PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';

/** One row, one call of the regular expression engine that takes minutes: DuckDB cannot cancel it. */
const STUCK = {
  yaml: `
id: 2b7b7a55-53a4-4f6e-8f0b-7d8f3a1c9e77
name: test.stuck
description: An endpoint for tests.
reads: edge
parameters:
  text: { type: text, required: true, description: Any text. }
columns:
  answer: { type: integer, description: Any number. }
cache: none
`,
  sql: `
with random as (select string_agg(md5($text || number::varchar), '') as text from range(100000) as numbers(number))
select regexp_matches(repeat(text, 30), '[0-7][0-9a-f]{100}z')::integer as answer from random`,
};

describe('a query that does not react to its cancellation', () => {
  const directory = mkdtempSync(join(tmpdir(), 'dendro-test-'));
  const custom = writeEndpointFolders({ stuck: STUCK });
  let server: ServerProcess | undefined;
  afterAll(() => {
    server?.signal('SIGKILL');
    custom.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('SIGTERM ends the process with one clear line, and the next start finds every acknowledged record', async () => {
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    const headers = { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/json' };
    server = await startServer(['--data', directory, '--endpoints', custom.folder], { env });
    const post = (project: string) =>
      fetch(`${server?.internalUrl}/api/logs?source_name=edge`, {
        method: 'POST',
        headers,
        body: JSON.stringify([{ project, event_message: 'kept', metadata: { request: { path: '/rest' } } }]),
      });
    expect((await post('acme')).status).toBe(200);
    const stuck = fetch(`${server.url}/api/endpoints/query/test.stuck?text=any`, { headers });
    stuck.catch(() => {}); // the process ends before it responds
    await fetch(`${server.url}/health`);
    server.signal('SIGTERM');
    const { code, stderr } = await server.ended;
    expect(code).toBeNull(); // ended by a signal
    expect(stderr).toMatch(
      /"message":"not stopped within 15 s, .*; killing the process\. No acknowledged data is lost"/,
    );
    server = await startServer(['--data', directory], { env });
    const response = await fetch(`${server.url}/api/endpoints/query/logs.all?project=acme`, { headers });
    const found = ((await response.json()) as { result: unknown[] }).result.length;
    reportFault({
      fault: 'a query that ignores its cancellation',
      runs: 1,
      outcome: 'SIGTERM ends the process after 15 s with one line; a restart has every record',
      lost: Math.max(0, 1 - found),
      duplicated: Math.max(0, found - 1),
    });
    expect((await server.stop()).code).toBe(0);
  });
});
