import { existsSync, rmSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { fetchResponse, NOW } from '../support/app.ts';
import { listHiddenStatements, listHostileQueries } from '../support/hostile-queries.ts';
import { edgeRecord } from '../support/record.ts';
import { STUDIO_CONFIG, StudioClient } from '../support/studio-client.ts';
import { useApp } from '../support/use-app.ts';

describe('hostile texts in the parameter sql', () => {
  const app = useApp(STUDIO_CONFIG);
  const studio = new StudioClient(app);
  const countQueries = () => app.events.filter(({ type }) => type === 'query_completed').length;
  beforeAll(async () => {
    rmSync('/tmp/dendro-attack', { recursive: true, force: true }); // of a run that failed
    await app.append(
      'edge',
      ['default', 'secret'].map(project =>
        edgeRecord({ id: project, at: NOW, project, message: `of ${project}` }),
      ),
    );
  });

  test('are refused: none of more than 2,000 runs a query', async () => {
    const queries = await listHostileQueries();
    expect(queries.length).toBeGreaterThan(2000);
    const before = countQueries();
    const wrong: unknown[] = [];
    for (const sql of queries) {
      const startedAt = performance.now();
      const { status, error, text } = await studio.send(sql);
      const isRefused = (status === 400 && error.param === 'sql') || status === 414;
      const isPlain = isRefused && !/Error:|\n/.test(error.message); // no message of an engine
      if (!isPlain || performance.now() - startedAt > 30_000)
        wrong.push([sql.slice(0, 200), status, text.slice(0, 200)]);
    }
    expect(wrong).toEqual([]);
    expect(countQueries()).toBe(before);
    expect(existsSync('/tmp/dendro-attack')).toBe(false);
    expect(app.events.filter(({ type }) => type === 'request_failed')).toEqual([]);
  }, 300_000);

  test('statements in literals and comments are only text', async () => {
    for (const sql of listHiddenStatements()) expect([sql, await studio.query(sql)]).toEqual([sql, []]);
    expect(existsSync('/tmp/dendro-attack')).toBe(false);
  });

  test('a text of 1 MB is refused with 414', async () => {
    const { status, error } = await studio.send(`select id from edge_logs where id = '${'x'.repeat(1e6)}'`);
    expect([status, error.code]).toEqual([414, 'uri_too_long']);
  });

  test('invalid UTF-8 is refused', async () => {
    for (const bytes of ['%ff', '%c3%28', '%ed%a0%80', '%00']) {
      const url = `${app.url}/api/endpoints/query/logs.all?project=default&sql=select+id+from+edge_logs+where+id='${bytes}'`;
      const { status, error } = await fetchResponse(url, {
        headers: { 'X-API-KEY': STUDIO_CONFIG.environmentKeys[0]?.secret ?? '' },
      });
      expect([status, error.param]).toEqual([400, 'sql']);
    }
  });

  test.each([
    "where identifier = 'secret'",
    "where identifier in ('secret', 'default') or true",
    "where not (identifier = 'default') or id = 'secret'",
    "where id = '' or '1' = '1'",
    "where event_message like '%secret%' or true --",
    "where project = 'secret' or true",
    "where 'secret' = 'secret' /* and project = 'default' */",
  ])('a query sees only the project of its request: %s', async where => {
    const { text } = await studio.send(
      `select id, identifier, event_message from edge_logs cross join unnest(metadata) as m ${where}`,
    );
    expect(text).not.toContain('of secret');
    expect(text).toContain('"result"');
  });
});
