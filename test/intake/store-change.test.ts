import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { idsOf, sendLogs } from '../support/logs.ts';

const MIB = 1024 * 1024;
/** No server listens there. Records are acknowledged nevertheless. */
const UNREACHABLE = parseClickHouseUrl('clickhouse://u:p@127.0.0.1:1/d');

const directory = useDirectory();
let app: TestApp | undefined;
afterEach(() => app?.close());

const start = async (storeName: 'duckdb' | 'clickhouse') => {
  await app?.close();
  const clickhouse = storeName === 'clickhouse' ? UNREACHABLE : undefined;
  app = await startTestApp({ store: { ...testStoreOptions(directory), clickhouse }, storeName });
  return app;
};
const send = async (to: TestApp, ids: readonly string[], message = 'm', kind = 'edge') => {
  const records = ids.map(id => ({ project: 'p', id, message }));
  const query = `?source_name=${kind}`;
  expect((await sendLogs(to.internalUrl, records, { query })).status).toBe(200);
};

test('records acknowledged with another store are found after switching back, although older segments are deleted', async () => {
  const embedded = await start('duckdb');
  for (const part of ['a', 'b', 'c'])
    await send(
      embedded,
      Array.from({ length: 12 }, (_, i) => `${part}${i}`),
      'x'.repeat(MIB - 100),
    );
  await expect.poll(() => idsOf(embedded, 'p')).toHaveLength(36);
  await embedded.store.flush(LOG_KINDS);
  const oldestSegment = join(directory, 'spool', '000000000001.spool');
  await send(embedded, ['in the next segment'], 'm', 'auth');
  await expect.poll(() => existsSync(oldestSegment)).toBe(false);
  await embedded.close();
  await send(await start('clickhouse'), ['acknowledged meanwhile']);
  const back = await start('duckdb');
  expect(await idsOf(back, 'p')).toHaveLength(37);
  expect(await idsOf(back, 'p')).toContain('acknowledged meanwhile');
});
