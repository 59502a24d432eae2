// The only place that calls the API. The token goes out as a header, to this page's own origin.
import { readToken } from '../token.ts';
import { type Answer, readAnswer } from './answer.ts';
import type { Endpoint } from './catalog.ts';
import { readFault, unreachable, unreadable, unusableToken } from './fault.ts';

export interface Asking {
  /** Has the query run again instead of taking what is cached. */
  readonly fresh?: boolean;
  readonly signal?: AbortSignal;
}

export async function ask(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
  asking: Asking = {},
): Promise<Answer> {
  const given = Object.entries(parameters).filter(([, value]) => value !== '');
  const path = `api/endpoints/query/${encodeURIComponent(endpoint)}?${new URLSearchParams(given)}`;
  return read(await call(path, asking), readAnswer, asking);
}

export async function fetchCatalog(): Promise<readonly Endpoint[]> {
  return read(await call('api/endpoints', {}), async response => {
    const { result } = (await response.json()) as { result: Endpoint[] };
    if (!Array.isArray(result)) throw new Error('there is no result');
    return result;
  });
}

/** An answer may be cut off on its way, and something in between may answer in its own way. */
async function read<T>(
  response: Response,
  reader: (response: Response) => Promise<T>,
  { signal }: Asking = {},
): Promise<T> {
  try {
    return await reader(response);
  } catch (error) {
    throw signal?.aborted === true ? error : unreadable();
  }
}

/**
 * The mode `no-cache` asks the server each time and lets the browser keep the bytes that have not changed. The header of
 * the same name has the server run its query again, and goes without the tag of what the browser keeps: mode `reload`.
 */
async function call(path: string, { fresh = false, signal }: Asking): Promise<Response> {
  const token = readToken() ?? '';
  if (!/^[\x21-\x7e]*$/.test(token)) throw unusableToken(); // no header can carry it
  const response = await fetch(path, {
    headers: {
      'X-API-KEY': token,
      Accept: 'application/json',
      ...(fresh ? { 'Cache-Control': 'no-cache' } : {}),
    },
    cache: fresh ? 'reload' : 'no-cache',
    credentials: 'omit',
    redirect: 'error',
    ...(signal === undefined ? {} : { signal }),
  }).catch(error => {
    throw signal?.aborted === true ? error : unreachable();
  });
  if (!response.ok) throw await readFault(response);
  return response;
}
