// The core acceptance set, for every form in which the program is delivered: create a token, start, ingest, call the three
// endpoints, kill -9, restart.
import { expect } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { sendLogs } from '../support/logs.ts';
import { type RunOptions, spawnDendro, startServer } from '../support/process.ts';

const edge = (id: string, path: string) => ({
  id,
  project: 'core',
  event_message: `GET ${path}`,
  metadata: { request: { path, host: 'core.example.com' }, response: { status_code: 200 } },
});
const invocation = (id: string, ms: number, status: number) => ({
  id,
  event_message: 'POST hello',
  metadata: {
    project_ref: 'core',
    function_id: 'hello',
    execution_time_ms: ms,
    response: { status_code: status },
  },
});

/** Runs the set with the given program on a new data directory. */
export async function checkCoreAcceptance(data: string, options: RunOptions): Promise<void> {
  const scopes = ['--scope', 'query', '--scope', 'ingest'];
  const created = await spawnDendro(
    ['token', 'create', '--name', 'core', ...scopes, '--data', data],
    options,
  );
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^dnd_\S{43}\n$/) });
  const token = created.stdout.trim();

  const args = ['--data', data, '--cache-bytes', '0'];
  let server = await startServer(args, options);
  const send = async (kind: string, records: readonly object[]) => {
    const sent = await sendLogs(server.internalUrl, records, { query: `?source_name=${kind}`, token });
    expect(sent).toMatchObject({ accepted: records.length, rejected: 0 });
  };
  const query = async (name: string, parameters: string, secret = token) => {
    const url = `${server.url}/api/endpoints/query/${name}?project=core&${parameters}`;
    return fetchResponse(url, { headers: { 'X-API-KEY': secret } });
  };
  const readIds = async () => (await query('logs.all', '')).rows.map(({ id }) => id).sort();
  /** The sums of these columns. The records are in two rows if the hour or the minute changes meanwhile. */
  const readSums = async (name: string, parameters: string, columns: readonly string[]) => {
    const { rows } = await query(name, parameters);
    return columns.map(column => rows.reduce((total, row) => total + Number(row[column]), 0));
  };
  try {
    await send('edge', [edge('e1', '/rest/v1/items'), edge('e2', '/auth/v1/token')]);
    await send('function_edge', [invocation('f1', 10, 200), invocation('f2', 30, 500)]);
    await expect.poll(readIds).toEqual(['e1', 'e2']);
    const services = ['total_rest_requests', 'total_auth_requests'];
    expect(await readSums('usage.api-counts', 'interval=daily', services)).toEqual([1, 1]);
    await expect
      .poll(() => readSums('functions.invocation-stats', 'interval=1day', ['count', 'error_count']))
      .toEqual([2, 1]);
    expect((await query('logs.all', '', `${token}x`)).status).toBe(401);

    await send('edge', [edge('e3', '/storage/v1/object')]);
    server.signal('SIGKILL'); // right after the acknowledgement
    await server.ended;
    server = await startServer(args, options);
    await expect.poll(readIds).toEqual(['e1', 'e2', 'e3']);
  } finally {
    expect((await server.stop()).code).toBe(0);
  }
}
