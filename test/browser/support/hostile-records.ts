// Records whose texts would run as HTML, script, style or link if a page did not show them as text.
import { expect } from 'vitest';
import { sendLogs } from './send-logs.ts';
import { queryApi } from './tab.ts';

export const HOSTILE =
  '"><img src=x onerror=alert(1)><a href="javascript:alert(1)">x</a><style>body{display:none}</style>';

/** Sends failed requests and invocations of a project, now and in the hour before the last one. */
export async function sendHostileRecords(project: string): Promise<void> {
  const times = [60, 120, 180, 5400].map(ago => new Date(Date.now() - ago * 1000).toISOString());
  const metadata = {
    request: { method: HOSTILE, path: `/rest/${HOSTILE}` },
    response: { status_code: 500 },
    [HOSTILE]: HOSTILE,
  };
  await sendLogs(
    'edge',
    times.map(timestamp => ({ project, timestamp, event_message: HOSTILE, metadata })),
  );
  const invocation = { project_ref: project, function_id: HOSTILE, execution_time_ms: 12, ...metadata };
  await sendLogs(
    'function_edge',
    times.map(timestamp => ({ timestamp, event_message: HOSTILE, metadata: invocation })),
  );
  await sendLogs(
    'edge',
    times.map(timestamp => ({
      project,
      timestamp,
      event_message: 'fine',
      metadata: { response: { status_code: 200 } },
    })),
  );
  const count = async () =>
    (await queryApi('logs.top', { project, kind: 'all', field: 'kind' })).rows.reduce(
      (sum, row) => sum + Number(row['count']),
      0,
    );
  await expect.poll(count).toBe(12);
}
