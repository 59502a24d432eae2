import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { NOW } from '../support/app.ts';
import { overwriteRandomly } from '../support/embedded-store.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const app = useApp();
beforeAll(async () => {
  await app.append('edge', [edgeRecord({ at: NOW, id: 'damaged', project: 'p' })]);
  const [part = ''] = readdirSync(join(app.dataDirectory, 'parts'));
  await app.append('edge', [edgeRecord({ at: NOW, id: 'sound', project: 'p' })]);
  const path = join(app.dataDirectory, 'parts', part);
  overwriteRandomly(path, 12_288, statSync(path).size - 12_288); // everything after the headers
});

test('a result that lacks a damaged part has the other records, a header and a log line', async () => {
  const response = await app.query('logs.all', { project: 'p' });
  expect([response.status, response.rows.map(({ id }) => id)]).toEqual([200, ['sound']]);
  expect(response.headers.get('Dendro-Missing-Parts')).toBe('1');
  const names = app.events.map(({ type }) => type);
  expect(names).toEqual(expect.arrayContaining(['part_set_aside', 'result_incomplete']));
});

test('results of another log kind or time range do not have the header', async () => {
  const statistics = await app.query('functions.invocation-stats', { project: 'p' });
  const earlier = await app.query('logs.all', {
    project: 'p',
    project_tier: 'PAYG',
    iso_timestamp_end: '2026-11-13',
  });
  for (const { status, headers } of [statistics, earlier])
    expect([status, headers.get('Dendro-Missing-Parts')]).toEqual([200, null]);
});
