// Sends logs over HTTP as shippers do, and reads the ids of stored records.
import { expect } from 'vitest';
import { API_KEY, fetchResponse, type TestApp, type TestResponse } from './app.ts';
import { savedQuery } from './store.ts';

export interface Sent extends TestResponse {
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly { readonly index: number; readonly code: string; readonly message: string }[];
}

export interface SendOptions {
  /** The query string, with its question mark. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
}

/** Sends strings and bytes unchanged, and any other value as JSON. */
export async function sendLogs(
  internalUrl: string,
  body: unknown,
  { query = '?source_name=edge', headers = {}, token = API_KEY }: SendOptions = {},
): Promise<Sent> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const response = await fetchResponse(`${internalUrl}/api/logs${query}`, {
    method: 'POST',
    body: isRaw ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body),
    headers: { 'X-API-KEY': token, 'Content-Type': 'application/json', ...headers },
  });
  return { ...response, ...(response.text.startsWith('{') ? JSON.parse(response.text) : {}) };
}

/** Returns the sorted ids of all records of a project. */
export async function idsOf(app: Pick<TestApp, 'store'>, project: string, kind = 'edge'): Promise<string[]> {
  const sql = `select id from ${kind}_logs where project = $project order by id`;
  const { rows } = await app.store.query(savedQuery(sql, ['text'], 1_000_000), {
    project: { type: 'text', value: project },
  });
  return rows.map(([id]) => String(id));
}

/** Returns the value of a metric, which is named with its labels. */
export async function readMetric(app: Pick<TestApp, 'internalUrl'>, name: string): Promise<number> {
  const { text } = await fetchResponse(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  const line = text.split('\n').find(each => each.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

/** Counts the records of the project `p` after the intake queue is empty. */
export async function countStored(app: TestApp, kind = 'edge'): Promise<number> {
  await expect.poll(() => readMetric(app, 'dendro_intake_queue_bytes')).toBe(0);
  return (await idsOf(app, 'p', kind)).length;
}
