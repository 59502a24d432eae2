import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sendLogs } from '../support/logs.ts';
import { createTempDirectory, PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
let data: ReturnType<typeof createTempDirectory>;
beforeEach(() => {
  data = createTempDirectory();
});
afterEach(() => data.remove());

const segment = () => join(data.path, 'spool', '000000000001.spool');
const queryIds = async () => {
  const { code, stdout, stderr } = await runDendro([
    ...['query', 'logs.all', '--project', 'p', '--json', '--data', data.path],
  ]);
  expect(code).toBe(0);
  const { result } = JSON.parse(stdout) as { result: { id: string }[] };
  return { ids: result.map(({ id }) => id).sort(), stderr };
};

/** Kills a server after it has acknowledged two records in each of three requests. */
const writeSpool = async () => {
  const server = await startServer(['--data', data.path], { env });
  for (const id of ['a', 'b', 'c']) {
    const records = [`${id}1`, `${id}2`].map(each => ({
      project: 'p',
      id: each,
      message: `message ${each}`,
    }));
    const { status } = await sendLogs(server.internalUrl, records, { token: PROCESS_API_KEY });
    expect(status).toBe(200);
  }
  server.signal('SIGKILL');
  await server.ended;
};

test('dendro query reports a damaged spool, shows the records behind the damage, and dendro ingest loads what can be read', async () => {
  await writeSpool();
  const bytes = readFileSync(segment());
  const at = bytes.indexOf('message b2') - 'b2\x1f'.length; // the separator behind the timestamp
  bytes[bytes.lastIndexOf(0x1f, at)] = 0x21;
  writeFileSync(segment(), bytes);
  const { ids, stderr } = await queryIds();
  expect(ids).toEqual(['a1', 'a2', 'c1', 'c2']);
  expect(stderr).toMatch(
    /^SPOOL DAMAGED: \d+ bytes of .*000000000001\.spool cannot be read and are now in .*damaged\. Acknowledged records lost, at most: 2 of kind edge\. 1 of them can be read: .*\n$/,
  );
  const damaged = join(data.path, 'spool', 'damaged');
  const files = readdirSync(damaged).filter(name => name.endsWith('.ndjson'));
  expect(files).toHaveLength(1);
  const loaded = await runDendro(['ingest', '--data', data.path, ...files.map(name => join(damaged, name))]);
  expect(loaded).toMatchObject({ code: 0, stdout: expect.stringContaining('1 accepted, 0 rejected') });
  expect(await queryIds()).toEqual({ ids: ['a1', 'a2', 'b1', 'c1', 'c2'], stderr: '' });
});
