// The button that downloads the records of a search as CSV: page by page, from the newest, up to a maximum.
import { ApiError, type QueryResult, type Row, runQuery } from '../api/client.ts';
import { h } from '../dom.ts';
import { formatCount, formatRecordCount } from '../format.ts';
import { downloadText, toCsv } from './csv.ts';
import type { LogColumn } from './kinds.ts';

/** Keeps the file small enough for the memory of a tab, and the load on the server bounded. */
const MAX_RECORDS = 10_000;

export interface Download {
  readonly parameters: Readonly<Record<string, string>>;
  readonly columns: readonly LogColumn[];
  readonly fileName: string;
}

export function createDownloadButton(endpoint: string, getDownload: () => Download): HTMLElement {
  const label = 'Download CSV';
  const button = h(
    'button',
    {
      type: 'button',
      class: 'button small',
      title: `The records of this search, from the newest, at most ${formatCount(MAX_RECORDS)}`,
    },
    label,
  );
  const status = h('span', { class: 'muted download-status', role: 'status' });
  let request: AbortController | undefined;
  button.addEventListener('click', async () => {
    if (request !== undefined) return request.abort();
    request = new AbortController();
    button.textContent = 'Cancel';
    const { parameters, columns, fileName } = getDownload();
    try {
      const showProgress = (count: number) => {
        status.textContent = formatRecordCount(count);
      };
      const { records, end } = await loadAll(endpoint, parameters, request.signal, showProgress);
      downloadText(fileName, 'text/csv;charset=utf-8', toCsv(records, columns));
      status.textContent = describeDownload(records.length, end);
    } catch (error) {
      if (!request.signal.aborted && !(error instanceof ApiError)) throw error;
      status.textContent = request.signal.aborted
        ? 'Cancelled'
        : `Download failed: ${(error as Error).message}`;
    } finally {
      request = undefined;
      button.textContent = label;
    }
  });
  return h('span', { class: 'download' }, status, button);
}

/** Why a download ended: it has all records, or the maximum, or an error stopped it. */
type End = 'complete' | 'maximum' | ApiError;

function describeDownload(count: number, end: End): string {
  const records = formatRecordCount(count);
  if (end === 'complete') return `Downloaded ${records}`;
  if (end === 'maximum') return `Downloaded the newest ${records}: narrow the search to get the others`;
  return `Downloaded only the newest ${records}: ${end.message}`;
}

/** If the API returns an error, keeps the records that are loaded already, and throws only if there are none. */
async function loadAll(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
  onProgress: (count: number) => void,
): Promise<{ records: Row[]; end: End }> {
  const records: Row[] = [];
  let cursor = '';
  do {
    try {
      const { rows, nextCursor } = await runWithRetries(endpoint, { ...parameters, cursor }, signal);
      records.push(...rows);
      onProgress(records.length);
      if (nextCursor === undefined) return { records, end: 'complete' };
      cursor = nextCursor;
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || records.length === 0) throw error;
      return { records, end: error };
    }
  } while (records.length < MAX_RECORDS);
  return { records: records.slice(0, MAX_RECORDS), end: 'maximum' };
}

/** If the rate limit rejects the request, waits as long as the server asks for, and retries. */
async function runWithRetries(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<QueryResult> {
  for (;;) {
    try {
      return await runQuery(endpoint, parameters, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'rate_limited') throw error;
      await new Promise(resolve => {
        setTimeout(resolve, (error.retryAfterSeconds ?? 1) * 1000);
        signal.addEventListener('abort', resolve, { once: true });
      });
      signal.throwIfAborted();
    }
  }
}
