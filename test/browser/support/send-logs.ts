// Sends records to the server of the browser tests.
import { expect, inject } from 'vitest';
import { queryApi } from './tab.ts';

export async function sendLogs(sourceName: string, records: readonly object[]): Promise<void> {
  const { status } = await fetch(`${inject('internalUrl')}/api/logs?source_name=${sourceName}`, {
    method: 'POST',
    headers: { 'X-API-KEY': inject('ingestToken'), 'Content-Type': 'application/json' },
    body: JSON.stringify(records),
  });
  expect(status).toBe(200);
}

/**
 * Sends an invocation for every five seconds of the last four minutes, and waits until queries return them. The demo data ends
 * when the server starts, so the 5-minute window no longer contains it in a test that runs more than five minutes later.
 */
export async function sendRecentInvocations(project: string): Promise<void> {
  const now = Date.now();
  const records = Array.from({ length: 48 }, (_, i) => ({
    timestamp: new Date(now - i * 5_000).toISOString(),
    event_message: 'POST 200 /functions/v1/recent',
    metadata: {
      ...{ project_ref: project, function_id: 'recent', execution_time_ms: 20 + i },
      response: { status_code: 200 },
    },
  }));
  await sendLogs('function_edge', records);
  const parameters = { project, kind: 'function_edge' };
  await expect
    .poll(async () => (await queryApi('logs.search', parameters)).rows.length)
    .toBeGreaterThanOrEqual(records.length);
}
