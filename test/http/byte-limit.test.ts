import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const RESPONSE_BYTES = 100_000;
const MESSAGE = '\u0001'.repeat(10_000); // six times as long in JSON

describe('the byte limit of a response', () => {
  const tokens = useTokens({ redacted: { scopes: ['query'], redact_pii: true } });
  const app = useApp({ responseBytes: RESPONSE_BYTES, tokensFile: tokens.file });
  beforeAll(async () => {
    const records = (project: string, message: string) =>
      Array.from({ length: 15 }, (_, i) =>
        edgeRecord({ id: `${i}`, project, at: `2026-11-14T12:00:${59 - i}Z`, message }),
      );
    await app.append('edge', [
      ...records('control', MESSAGE),
      ...records('addresses', '::1 '.repeat(2_000)), // redaction makes it longer
      ...records('small', 'a short message'),
      edgeRecord({ id: 'large', project: 'large', at: '2026-11-14T12:00:01Z', message: MESSAGE.repeat(2) }),
      edgeRecord({ id: 'small', project: 'large', at: '2026-11-14T12:00:00Z' }),
    ]);
  });

  const send = (
    project: string,
    format: string,
    headers: Record<string, string> = { 'X-API-KEY': API_KEY },
  ) => app.get(`/api/endpoints/query/logs.all?project=${project}&format=${format}`, { headers });

  test.each([
    ['json', 1],
    ['ndjson', 1],
    ['csv', 9],
    ['csv-raw', 9],
  ])('cuts %s after the last row that fits, and reports it', async (format, rowCount) => {
    const { status, headers, text } = await send('control', format);
    expect([status, headers.get('dendro-clipped')]).toEqual([200, 'byte-limit']);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(RESPONSE_BYTES);
    expect(text.split(format.startsWith('csv') ? MESSAGE : '\\u0001\\u0001"').length - 1).toBe(rowCount);
  });

  test('applies before compression and after redaction', async () => {
    const plain = await send('addresses', 'json');
    expect(plain.rows).toHaveLength(12);
    const redacted = await send('addresses', 'json', { 'X-API-KEY': tokens.secrets.redacted });
    expect(redacted.rows).toHaveLength(5);
    const compressed = await send('addresses', 'json', { 'X-API-KEY': API_KEY, 'Accept-Encoding': 'gzip' });
    expect(compressed.text).toBe(plain.text);
    for (const { headers } of [plain, redacted, compressed])
      expect(headers.get('dendro-clipped')).toBe('byte-limit');
  });

  test('is listed with other reasons, also in a 304', async () => {
    const path = '/api/endpoints/query/logs.all?project=control&iso_timestamp_start=2026-01-01&format=ndjson';
    const { headers } = await app.get(path);
    expect(headers.get('dendro-clipped')?.split(', ').sort()).toEqual(['byte-limit', 'retention']);
    const etag = headers.get('etag') ?? '';
    const unchanged = await app.get(path, { headers: { 'X-API-KEY': API_KEY, 'If-None-Match': etag } });
    expect(unchanged.status).toBe(304);
    expect(unchanged.headers.get('dendro-clipped')).toBe(headers.get('dendro-clipped'));
  });

  test('a first row above the limit gives an empty result that reports the limit', async () => {
    const { status, text, headers } = await send('large', 'json');
    expect([status, text, headers.get('dendro-clipped')]).toEqual([200, '{"result":[]}', 'byte-limit']);
  });

  test('a result below the limit is complete', async () => {
    const { rows, headers } = await send('small', 'json');
    expect([rows.length, headers.get('dendro-clipped')]).toEqual([15, null]);
  });
});
