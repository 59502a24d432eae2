// Alerts of a whole application: a real store, real requests to a real receiver, and a timer and a clock that the test controls.
import { createHmac, hash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AlertApp, alertEndpoint, startAlertApp } from '../support/alerts.ts';
import { API_KEY, fetchResponse, testStoreOptions } from '../support/app.ts';
import {
  type EndpointFiles,
  SLEEP,
  testEndpoint,
  writeEndpointFolders,
} from '../support/custom-endpoints.ts';
import { useDirectory } from '../support/hooks.ts';
import { readMetric } from '../support/logs.ts';
import { flushPromises } from '../support/manual-timer.ts';
import { TestReceiver } from '../support/receiver.ts';
import { edgeRecord } from '../support/record.ts';
import { createTokens } from '../support/tokens.ts';

const directory = useDirectory();
let receiver: TestReceiver;
let app: AlertApp | undefined;
beforeEach(async () => {
  receiver = await TestReceiver.start();
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  await receiver.stop();
});

const webhook = (more: object = {}) => ({ ops: { type: 'webhook', url: `${receiver.url}/hook`, ...more } });
const start = async (alert: object = {}, receivers: object = webhook()) => {
  app = await startAlertApp({ problems: alertEndpoint(alert) }, receivers);
  return app;
};
const received = async (count: number) => {
  await expect.poll(() => receiver.requests.length).toBe(count);
  for (let turn = 0; turn < 5; turn++) await flushPromises(); // until the server has read the response
};

describe('a webhook', () => {
  test('gets the documented JSON, signed, when an instance fires and when it resolves', async () => {
    const running = await start(
      { severity: 'critical' },
      webhook({ secret: '$TEST_SECRET', authorization: '$TEST_AUTH' }),
    );
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    const [{ body, headers, text, path } = expect.fail()] = receiver.requests;
    expect(path).toBe('/hook');
    expect(body).toEqual({
      ...{ version: 1, id: headers['idempotency-key'], alert: 'test.problems', severity: 'critical' },
      ...{ state: 'firing', created_at: '2026-11-14T12:34:56.789012Z' },
      instances: [
        {
          ...{ state: 'firing', cause: 'row', key: { project: 'acme' }, summary: '1 problems in acme' },
          ...{ row: { project: 'acme', count: 1 }, started_at: '2026-11-14T12:34:56.789012Z' },
          ...{ ended_at: null, reason: null },
          link: 'https://logs.example.com/?view=logs&project=acme&kind=edge&range=custom&start=2026-11-14T11:34:56.789012Z&end=2026-11-14T12:34:56.789012Z',
        },
      ],
    });
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Bearer x',
      'dendro-signature': `sha256=${createHmac('sha256', 'the-secret-of-the-tests').update(text).digest('hex')}`,
    });
    await running.evaluate(11 * 60_000);
    await running.evaluate();
    await received(2);
    expect(receiver.requests[1]?.body).toMatchObject({
      state: 'resolved',
      instances: [
        { state: 'resolved', ended_at: '2026-11-14T12:46:56.789012Z', reason: 'the problem is gone' },
      ],
    });
  });

  test('gets addresses replaced if it asks for it', async () => {
    const endpoint = testEndpoint('test.problems', {
      columns: { address: 'text', project: 'text' },
      sql: "select '10.1.2.3' as address, '2001:db8::1' as project",
      more: { alert: { every: '1m', key: ['address'], summary: 'from {address}' } },
    });
    const plain = { type: 'webhook', url: `${receiver.url}/plain` };
    const receivers = { plain, ...webhook({ redact: true }) };
    app = await startAlertApp({ problems: endpoint }, receivers, {}, 'http://10.9.8.7:4000');
    await app.evaluate();
    await received(2);
    const byPath = Object.fromEntries(receiver.requests.map(({ path, text }) => [path, text]));
    expect(byPath['/plain']).toContain('10.1.2.3');
    expect(byPath['/hook']).not.toMatch(/10\.1\.2\.3|2001/);
    expect(byPath['/hook']).toContain('from REDACTED');
    expect(byPath['/hook']).toContain('http://10.9.8.7:4000/?view=logs&project=REDACTED&');
  });
});

test('Slack gets a text with the worst 10 instances, escaped, and links', async () => {
  const running = await start(
    { summary: '<{project}>', resolve_after: 1 },
    { team: { type: 'slack', url: receiver.url } },
  );
  await running.addProblem(...Array.from({ length: 12 }, (_, index) => `p${index + 10}`));
  await running.evaluate();
  await received(1);
  const { text } = receiver.requests[0]?.body ?? {};
  expect(text).toMatch(
    /^\*test\.problems\* \(warning\): 12 firing\n:rotating_light: &lt;p10&gt; <https:.*\|open>\n/,
  );
  expect(text.split('\n')).toHaveLength(12);
  expect(text).toMatch(/and 2 more$/);
  await running.evaluate(9 * 60_000);
  await running.addProblem('new');
  await running.evaluate();
  await received(2);
  expect(receiver.requests[1]?.body.text).toMatch(/: 1 firing, 12 resolved\n:rotating_light: &lt;new&gt; /);
});

test('Alertmanager gets labels, and the firing instances again every 5 minutes', async () => {
  const running = await start({}, { am: { type: 'alertmanager', url: receiver.url } });
  await running.addProblem('acme');
  await running.evaluate();
  await received(1);
  const [{ path, body } = expect.fail()] = receiver.requests;
  expect(path).toBe('/api/v2/alerts');
  expect(body).toEqual([
    {
      labels: { alertname: 'test.problems', severity: 'warning', project: 'acme' },
      annotations: { summary: '1 problems in acme' },
      startsAt: '2026-11-14T12:34:56.789Z',
      endsAt: '2026-11-16T12:34:56.789Z',
      generatorURL: expect.stringContaining('project=acme'),
    },
  ]);
  for (const _ of [1, 2, 3, 4]) await running.evaluate();
  expect(receiver.requests).toHaveLength(1);
  await running.evaluate();
  await received(2);
  expect(receiver.requests[1]?.body).toMatchObject([{ labels: { project: 'acme' } }]);
});

test('Alertmanager gets no time after that of the notification, and an end a minute before it, but after the start', async () => {
  const running = await start({ resolve_after: 1 }, { am: { type: 'alertmanager', url: receiver.url } });
  const times = () => {
    const [{ startsAt, endsAt }] = receiver.requests.at(-1)?.body ?? [];
    return [startsAt, endsAt];
  };
  await running.addProblem('acme');
  await running.evaluate();
  await received(1);
  await running.evaluate(11 * 60_000);
  await received(2);
  expect(times()).toEqual(['2026-11-14T12:34:56.789Z', '2026-11-14T12:44:56.789Z']);
  await running.addProblem('beta');
  await running.evaluate();
  await received(3);
  await running.store.eraseProject({ project: 'beta' });
  await running.evaluate(-60 * 60_000);
  await received(4);
  expect(times()).toEqual(['2026-11-14T11:46:56.789Z', '2026-11-14T11:46:56.789Z']);
});

test('Alertmanager gets the severity with which an instance fired until it resolves', async () => {
  const running = await start({ resolve_after: 1 }, { am: { type: 'alertmanager', url: receiver.url } });
  await running.addProblem('acme');
  await running.evaluate();
  await received(1);
  const changed = alertEndpoint({ resolve_after: 1, severity: 'critical' });
  writeEndpointFolders({ problems: changed }, running.endpointsFolder);
  await running.reloadEndpoints();
  await running.addProblem('beta');
  await running.evaluate();
  await received(2);
  await running.evaluate(11 * 60_000);
  await received(3);
  const sent = receiver.requests.flatMap(({ body }) =>
    body.map(
      ({ labels }: { labels: Record<string, string> }) => `${labels['project']} ${labels['severity']}`,
    ),
  );
  expect(sent).toEqual(['acme warning', 'beta critical', 'acme warning', 'beta critical']);
});

describe('evaluations', () => {
  const SLOW_QUERY = {
    columns: { answer: 'integer' },
    sql: 'select coalesce(cast(sleep_ms(500) as integer), 1) as answer',
  } as const;
  const SLOW = testEndpoint('test.slow', { ...SLOW_QUERY, more: { alert: { every: '1m' } } });

  /** The first evaluation waits for the query of a client, until `release` is called. */
  const startHeld = async (endpoints: Readonly<Record<string, EndpointFiles>>) => {
    // With two slots, background work leaves one free.
    const store = { ...testStoreOptions(directory), queryConcurrency: 2 };
    const running = await startAlertApp({ ...endpoints, sleep: SLEEP }, webhook(), { store });
    app = running;
    const client = new AbortController();
    const path = '/api/endpoints/query/test.sleep?milliseconds=600000';
    running.get(path, { signal: client.signal }).catch(() => {});
    await expect.poll(() => running.store.readStatistics().runningQueries).toBe(1);
    await running.pass(0);
    await expect.poll(() => running.store.readStatistics().waitingQueries).toBe(1);
    const evaluated = () =>
      running.events.flatMap(event => (event.type === 'alert_evaluated' ? event.alert : []));
    expect(evaluated()).toEqual([]);
    return { running, evaluated, release: () => client.abort() };
  };

  test('do not use the cache', async () => {
    const endpoint = alertEndpoint({}, 'test.problems', {
      cache: { lifetime_seconds: 900, warming_seconds: 300 },
    });
    app = await startAlertApp({ problems: endpoint }, webhook(), { cacheBytes: 1_000_000 });
    expect((await app.query('test.problems', {})).rows).toEqual([]);
    await app.addProblem('acme');
    await app.evaluate();
    await received(1);
  });

  test('wait for the queries of clients', async () => {
    const { evaluated, release } = await startHeld({ problems: alertEndpoint({}) });
    release();
    await expect.poll(evaluated).toEqual(['test.problems']);
  });

  test('of a failing query are no reason to resolve, and notify after the third one', async () => {
    const endpoint = testEndpoint('test.problems', {
      columns: { project: 'text' },
      sql: "select case when timestamp > $now - interval '10 minutes' then project else error('the store is broken') end as project from edge_logs",
      more: { alert: { every: '1m', key: ['project'], summary: '{project}', resolve_after: 1 } },
    });
    app = await startAlertApp({ problems: endpoint }, webhook());
    await app.addProblem('acme');
    await app.evaluate();
    await received(1);
    await app.evaluate(15 * 60_000);
    await app.evaluate();
    expect(receiver.instances()).toEqual(['firing acme']);
    await app.evaluate();
    await received(2);
    expect(receiver.requests[1]?.body).toMatchObject({
      state: 'error',
      instances: [
        { state: 'error', cause: 'error', summary: expect.stringContaining('the query of the alert fails') },
      ],
    });
    expect(receiver.requests[1]?.text).not.toContain('the store is broken');
    expect(await app.alerts()).toMatchObject([{ state: 'error' }]);
    expect(await readMetric(app, 'dendro_alerts{state="error"}')).toBe(1);
    await app.store.eraseProject({ project: 'acme' });
    await app.evaluate();
    await received(3);
    expect(receiver.requests[2]?.body.instances).toMatchObject([
      { state: 'resolved', key: { project: 'acme' } },
      { state: 'resolved', cause: 'error' },
    ]);
  });

  test('fire if there are no new records, and do not resolve what fired before', async () => {
    const running = await start({ no_data: { alert: '30m' }, resolve_after: 1 });
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    await running.evaluate(31 * 60_000);
    await received(2);
    expect(receiver.requests[1]?.body.instances).toMatchObject([
      {
        state: 'firing',
        cause: 'no_data',
        summary: 'no records of kind edge since 2026-11-14T12:34:56.789012Z',
      },
    ]);
    await running.append('edge', [edgeRecord({ project: 'other', at: running.now() })]);
    await running.evaluate();
    await received(3);
    expect(receiver.requests[2]?.body.instances).toMatchObject([
      { state: 'resolved', key: { project: 'acme' } },
      { state: 'resolved', cause: 'no_data' },
      { state: 'firing', key: { project: 'other' } },
    ]);
  });

  test('do not resolve an instance whose row may have been cut by the row limit', async () => {
    const endpoint = alertEndpoint({ resolve_after: 1 }, 'test.problems', { max_rows: 2 });
    app = await startAlertApp({ problems: endpoint }, webhook());
    await app.addProblem('c', 'd');
    await app.evaluate();
    await received(1);
    await app.addProblem('a', 'b');
    await app.evaluate();
    await received(2);
    expect(receiver.instances()).toEqual(['firing c', 'firing d', 'firing a', 'firing b']);
  });

  test('that take too long are not repeated; the missed ones are counted', async () => {
    const { running, evaluated, release } = await startHeld({ slow: SLOW });
    running.skip(5 * 60_000);
    release();
    await expect.poll(evaluated).toEqual(['test.slow']);
    expect(await running.alerts()).toMatchObject([{ missed_evaluations: 4 }]);
    expect(await readMetric(running, 'dendro_alert_evaluations_total{outcome="missed"}')).toBe(4);
    expect(await readMetric(running, 'dendro_alert_evaluations_total{outcome="ok"}')).toBe(1);
  });

  test('count if their alert is loaded again meanwhile, but did not change', async () => {
    const { running, release } = await startHeld({ slow: SLOW });
    writeEndpointFolders({ other: alertEndpoint({}) }, running.endpointsFolder);
    await running.reloadEndpoints();
    release();
    await received(1); // although no time passes, in which it could be repeated
  });

  test('whose alert changes meanwhile do not count, and are repeated', async () => {
    const { running, evaluated, release } = await startHeld({ slow: SLOW });
    writeEndpointFolders(
      {
        slow: testEndpoint('test.slow', { ...SLOW_QUERY, more: { alert: { every: '1m', summary: 'new' } } }),
      },
      running.endpointsFolder,
    );
    await running.reloadEndpoints();
    release();
    await expect
      .poll(async () => {
        await running.pass(100);
        return receiver.requests.length;
      })
      .toBe(1);
    expect(evaluated()).toHaveLength(1);
  });

  test('of several alerts run one after the other, and pause four times as long as they take', async () => {
    app = await startAlertApp({ a: SLOW, b: alertEndpoint({}) }, webhook());
    await app.evaluate();
    const evaluated = () =>
      app?.events.flatMap(event => (event.type === 'alert_evaluated' ? event.alert : []));
    expect(evaluated()).toEqual(['test.slow']);
    await app.pass(1_900); // its query took at least 500 ms
    expect(evaluated()).toHaveLength(1);
    await app.pass(50_000);
    await expect.poll(evaluated).toEqual(['test.slow', 'test.problems']);
  });

  test('that fail delay those of other alerts by 10 s at most', async () => {
    const failing = testEndpoint('test.failing', {
      columns: { answer: 'integer' },
      sql: "select cast(error('broken') as integer) as answer",
      more: { alert: { every: '1d' } },
    });
    const { running, evaluated, release } = await startHeld({ a: failing, b: alertEndpoint({}) });
    running.skip(60_000); // as long as the query takes
    release();
    await expect.poll(evaluated).toEqual(['test.failing']);
    await running.pass(10_000);
    await expect.poll(evaluated).toEqual(['test.failing', 'test.problems']);
  });
});

describe('a clock that jumps', () => {
  const ALWAYS = testEndpoint('test.problems', {
    columns: { name: 'text' },
    sql: "select 'x' as name",
    more: { alert: { every: '1m', key: ['name'], for: '3m', repeat: '10m' } },
  });

  test.each([
    ['forward', 86_400_000],
    ['back', -86_400_000],
  ])('%s neither sends nor delays a notification', async (_, ms) => {
    app = await startAlertApp({ problems: ALWAYS }, webhook());
    await app.evaluate();
    await app.evaluate();
    app.stepClock(ms);
    await app.evaluate();
    expect(receiver.requests).toHaveLength(0);
    await app.evaluate();
    await received(1);
    app.stepClock(-ms);
    for (let minute = 1; minute < 10; minute++) await app.evaluate();
    expect(receiver.requests).toHaveLength(1);
    await app.evaluate();
    await received(2);
  });
});

test('a receiver that hangs delays neither another one nor an evaluation', async () => {
  const other = await TestReceiver.start();
  try {
    const running = await start({}, { ...webhook(), other: { type: 'webhook', url: other.url } });
    receiver.behaviour = 'hang';
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    await expect.poll(() => other.requests.length).toBe(1);
    await running.addProblem('beta');
    await running.evaluate();
    await expect.poll(() => other.requests.length).toBe(2);
    expect(await readMetric(running, 'dendro_notifications_waiting')).toBe(2);
  } finally {
    await other.stop();
  }
});

describe('the definitions', () => {
  const rejections = () =>
    (app?.events ?? []).flatMap(event =>
      event.type === 'endpoints_rejected' ? [(event.error as Error).message] : [],
    );

  test('can change while the server runs: an alert that is removed resolves with this reason', async () => {
    const running = await start();
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    rmSync(join(running.endpointsFolder, 'problems'), { recursive: true });
    await running.reloadEndpoints();
    await received(2);
    expect(receiver.requests[1]?.body.instances).toMatchObject([
      { state: 'resolved', reason: 'the alert was removed' },
    ]);
    expect(await running.alerts()).toMatchObject([
      { name: 'test.problems', state: 'removed', instances: [] },
    ]);
  });

  test('and the receivers are reloaded together; a problem in either keeps both, and is reported with its line', async () => {
    const running = await start({ notify: ['ops'] });
    running.writeReceivers({ other: { type: 'webhook', url: receiver.url } });
    await running.reloadEndpoints();
    expect(rejections()[0]).toMatch(
      /problems\/endpoint\.yaml: alert\.notify\.0: there is no receiver ops in the file of --receivers; it has: other at line \d+$/,
    );
    running.writeReceivers({ ops: { type: 'webhook', url: '$MISSING' } });
    await running.reloadEndpoints();
    expect(rejections()[1]).toMatch(
      /receivers\.yaml: receivers\.ops\.url: the variable MISSING is not set at line 4$/,
    );
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    running.writeReceivers({ ops: { type: 'webhook', url: `${receiver.url}/new` } });
    await running.reloadEndpoints();
    await running.addProblem('beta');
    await running.evaluate();
    await received(2);
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/hook', '/new']);
  });

  test('and the receivers are loaded even if the state of an alert that was removed cannot be written; it resolves later', async () => {
    const running = await startAlertApp(
      { one: alertEndpoint({}, 'test.one'), two: alertEndpoint({ every: '2m' }, 'test.two') },
      webhook(),
    );
    app = running;
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    await running.pass(30_000);
    await received(2);
    await expect.poll(() => readMetric(running, 'dendro_notifications_waiting')).toBe(0);
    const file = `${hash('sha256', 'test.one').slice(0, 32)}.json`;
    mkdirSync(join(running.dataDirectory, 'alerts', `${file}.new`)); // the next write fails
    rmSync(join(running.endpointsFolder, 'one'), { recursive: true });
    running.writeReceivers({ ops: { type: 'webhook', url: `${receiver.url}/new` } });
    await running.reloadEndpoints();
    const failures = () => running.events.filter(({ type }) => type === 'alert_state_failed').length;
    await expect.poll(failures).toBeGreaterThan(0);
    await running.pass(30_000); // a second reload, which finds the changed folder, fails too
    await expect.poll(failures).toBeGreaterThan(1);
    rmdirSync(join(running.dataDirectory, 'alerts', `${file}.new`));
    await running.addProblem('beta');
    await running.pass(90_000);
    await expect
      .poll(async () => {
        await running.pass(100); // a reload may repeat the evaluation
        return receiver.requests.length;
      })
      .toBe(4);
    const sent = receiver.requests.slice(2).map(({ path, body }) => `${path} ${body.alert} ${body.state}`);
    expect(sent.sort()).toEqual(['/new test.one resolved', '/new test.two firing']);
  });

  test('with a list of parameter sets are several alerts', async () => {
    const endpoint = testEndpoint('test.problems', {
      parameters: { project: {} },
      columns: { project: 'text' },
      sql: 'select distinct project from edge_logs where project = $project',
      more: { alert: { every: '1m', parameters: [{ project: 'acme' }, { project: 'beta' }] } },
    });
    app = await startAlertApp({ problems: endpoint }, webhook());
    expect((await app.alerts()).map(({ name }) => name)).toEqual([
      'test.problems:project=acme',
      'test.problems:project=beta',
    ]);
  });
});

describe('the state', () => {
  const files = (running: AlertApp) => {
    const folder = join(running.dataDirectory, 'alerts');
    const names = readdirSync(folder).filter(name => name.endsWith('.json')); // no file that is being written
    return names.map(name => readFileSync(join(folder, name), 'utf8'));
  };

  test('no longer contains a project that was erased, and neither do waiting notifications', async () => {
    const tokens = await createTokens({ admin: { scopes: ['admin', 'query'] } });
    app = await startAlertApp({ problems: alertEndpoint({ resolve_after: 1 }) }, webhook(), {
      tokensFile: tokens.file,
    });
    receiver.behaviour = 500;
    await app.addProblem('acme', 'beta');
    await app.evaluate();
    await received(1);
    expect(files(app).join()).toContain('acme');
    const headers = { 'X-API-KEY': tokens.secrets.admin, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ project: 'acme' });
    const url = `${app.internalUrl}/api/admin/erase`;
    expect((await fetchResponse(url, { method: 'POST', headers, body })).status).toBe(202);
    await expect
      .poll(async () => (await fetchResponse(url, { headers })).rows)
      .toMatchObject({ state: 'done' });
    expect(files(app).join()).not.toContain('acme');
    expect(files(app).join()).toContain('beta');
    receiver.behaviour = 200;
    await app.pass(2_000);
    await expect.poll(() => receiver.instances().slice(2)).toEqual(['firing beta']);
    tokens.remove();
  });

  test('is part of a backup', async () => {
    const tokens = await createTokens({ admin: { scopes: ['admin'] } });
    app = await startAlertApp({ problems: alertEndpoint({}) }, webhook(), { tokensFile: tokens.file });
    await app.addProblem('acme');
    await app.evaluate();
    await received(1);
    const headers = { 'X-API-KEY': tokens.secrets.admin };
    const response = await fetch(`${app.internalUrl}/api/admin/backup`, { headers });
    const archive = Buffer.from(await response.arrayBuffer()).toString('latin1');
    expect(archive).toMatch(/alerts\/[0-9a-f]{32}\.json/);
    expect(archive).toContain('"name":"test.problems"');
    tokens.remove();
  });

  // A crash leaves one of three states on disk: before the write of an evaluation, after it, and after a delivery was noted.
  test('of each step of a notification is enough to continue: it is sent once, or again with the same id', async () => {
    const running = await start();
    const directory = mkdtempSync(join(tmpdir(), 'dendro-steps-'));
    const snapshot = (name: string) => {
      cpSync(join(running.dataDirectory, 'parts'), join(directory, name, 'parts'), { recursive: true });
      for (const file of ['alerts', 'manifest.json', 'format.json'])
        if (existsSync(join(running.dataDirectory, file)))
          cpSync(join(running.dataDirectory, file), join(directory, name, file), { recursive: true });
    };
    await running.addProblem('acme');
    snapshot('before');
    receiver.onRequest = () => snapshot('sent');
    await running.evaluate();
    await received(1);
    receiver.onRequest = () => {};
    await expect.poll(() => running.events.filter(({ type }) => type === 'notification_sent').length).toBe(1);
    snapshot('noted');
    const id = receiver.requests[0]?.headers['idempotency-key'];
    const idsAfter = async (name: string) => {
      receiver.requests.splice(0);
      const store = testStoreOptions(join(directory, name));
      const again = await startAlertApp({ problems: alertEndpoint({}) }, webhook(), { store });
      await again.pass(60_000); // an alert with a state is evaluated an interval after its last evaluation
      await expect.poll(() => again.events.some(({ type }) => type === 'alert_evaluated')).toBe(true);
      // A delivery that runs while time passes would be aborted and repeated.
      await expect.poll(() => readMetric(again, 'dendro_notifications_waiting')).toBe(0);
      await again.evaluate();
      await expect.poll(() => readMetric(again, 'dendro_notifications_waiting')).toBe(0);
      await again.close();
      return receiver.requests.map(({ headers }) => headers['idempotency-key'] === id);
    };
    expect(await idsAfter('before')).toEqual([false]);
    expect(await idsAfter('sent')).toEqual([true]);
    expect(await idsAfter('noted')).toEqual([]);
    rmSync(directory, { recursive: true });
  });

  test('has the time of the last evaluation: a restart neither counts time twice nor evaluates early', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dendro-restart-'));
    const restart = async (steps: (running: AlertApp, evaluations: () => number) => Promise<void>) => {
      const endpoint = alertEndpoint({ every: '5m', for: '5m' });
      const running = await startAlertApp({ problems: endpoint }, webhook(), {
        store: testStoreOptions(directory),
      });
      const evaluations = () => running.events.filter(({ type }) => type === 'alert_evaluated').length;
      await steps(running, evaluations);
      await running.close();
    };
    await restart(async running => {
      await running.addProblem('acme');
      await running.evaluate();
      expect(await running.alerts()).toMatchObject([{ state: 'pending' }]);
    });
    // The clock of each application starts at the same time.
    await restart(async (running, evaluations) => {
      expect(await running.alerts()).toMatchObject([{ last_evaluated_at: '2026-11-14T12:34:56.789012Z' }]);
      await running.pass(299_000);
      expect(evaluations()).toBe(0);
      await running.pass(1_000);
      await expect.poll(evaluations).toBe(1);
      await received(1);
    });
    rmSync(directory, { recursive: true });
  });

  test('has no history of a project that was erased, even if only the text names it', async () => {
    const running = await start({ key: [], resolve_after: 1 });
    await running.addProblem('acme');
    await running.evaluate();
    await running.evaluate(11 * 60_000);
    await received(2);
    await expect.poll(() => files(running).join()).toContain('"outbox":[]');
    expect(files(running).join()).toContain('1 problems in acme');
    const { AlertStates } = await import('../../src/alert/state.ts');
    const states = new AlertStates(running.dataDirectory, () => {});
    await states.erase({ project: 'other' });
    expect(files(running)).toHaveLength(1);
    await states.erase({ project: 'acme' });
    expect(files(running)).toEqual([]);
  });

  test('has nothing with the name of an erased project as a word of a value, but keeps other names that contain it', async () => {
    const running = await start({ resolve_after: 1 });
    receiver.behaviour = 500;
    const erased = ['acme/hello', 'x%2Facme', '{"project":"acme"}', 'a\\nacme.'];
    await running.addProblem(...erased, 'beta', 'acme-staging', 'acme2', 'project');
    await running.evaluate();
    await received(1);
    const { AlertStates } = await import('../../src/alert/state.ts');
    const copy = mkdtempSync(join(tmpdir(), 'dendro-state-')); // the running server writes to its own files
    const folder = join(copy, 'alerts');
    mkdirSync(folder);
    for (const name of readdirSync(join(running.dataDirectory, 'alerts')))
      if (name.endsWith('.json'))
        copyFileSync(join(running.dataDirectory, 'alerts', name), join(folder, name));
    writeFileSync(join(folder, 'broken.json'), '{"acme"');
    const states = new AlertStates(copy, () => {});
    await states.erase({ project: 'acme' });
    expect(readdirSync(folder)).toHaveLength(1);
    const projects = () =>
      Object.values(states.get('test.problems').instances).map(({ key }) => key['project']);
    expect(projects()).toEqual(['acme-staging', 'acme2', 'beta', 'project']);
    expect(states.get('test.problems').outbox[0]?.items).toHaveLength(4);
    await states.erase({ project: 'project' }); // also the name of a column
    expect(projects()).toEqual(['acme-staging', 'acme2', 'beta']);
    rmSync(copy, { recursive: true });
  });

  test('that is no JSON is reported and set aside, and its problems are reported again', async () => {
    const running = await start();
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    const { AlertStates } = await import('../../src/alert/state.ts');
    const folder = join(running.dataDirectory, 'alerts');
    writeFileSync(join(folder, 'broken.json'), '{');
    writeFileSync(join(folder, 'left.json.new'), 'acme');
    const events: string[] = [];
    const states = new AlertStates(running.dataDirectory, ({ type }) => void events.push(type));
    expect(events).toEqual(['alert_state_unreadable']);
    expect(states.all().map(({ name }) => name)).toEqual(['test.problems']);
    expect(readdirSync(folder)).toHaveLength(2);
    expect(readFileSync(join(folder, 'broken.json.unreadable'), 'utf8')).toBe('{');
  });

  test.each([
    ['has another version', (file: string) => writeFileSync(file, '{"version":2}'), 'has the version 2'],
    ['cannot be read', (file: string) => symlinkSync(file, file), 'ELOOP'],
  ])('that %s stops the start and stays', async (_, write, message) => {
    const folder = mkdtempSync(join(tmpdir(), 'dendro-state-'));
    mkdirSync(join(folder, 'alerts', 'folder.json'), { recursive: true }); // is ignored
    write(join(folder, 'alerts', 'a.json'));
    const { AlertStates } = await import('../../src/alert/state.ts');
    expect(() => new AlertStates(folder, () => {})).toThrow(message);
    expect(readdirSync(join(folder, 'alerts'))).toEqual(['a.json', 'folder.json']);
    rmSync(folder, { recursive: true });
  });

  test('has rows of about 2,000 characters, and more instances than it can have are logged', async () => {
    const names = ['one', 'two', 'three', 'four', 'five'];
    const endpoint = testEndpoint('test.problems', {
      columns: { project: 'text', ...Object.fromEntries(names.map(name => [name, 'text'])) },
      // Each minute has 600 other rows.
      sql: `select concat(minute($now), '-', i) as project, ${names.map(name => `repeat('y', 600) as ${name}`)} from range(600) t(i) order by i`,
      more: {
        alert: { every: '1m', key: ['project'], summary: '{one}{two}{three}{four}', resolve_after: 3 },
      },
    });
    app = await startAlertApp({ problems: endpoint }, webhook());
    await app.evaluate();
    await app.evaluate();
    await app.evaluate();
    await received(2);
    const { instances } = receiver.requests[0]?.body ?? {};
    expect(receiver.instances()).toHaveLength(1000);
    expect(instances[0].row.project).toBe('34-0');
    expect(JSON.stringify(instances[0].row).length).toBeLessThan(2200);
    expect(instances[0].summary).toHaveLength(2001);
    const ignored = app.events.filter(({ type }) => type === 'alert_rows_ignored');
    expect(ignored).toMatchObject([{ ignored: 200 }, { ignored: 600 }]);
  });

  test('has an instance for each key, however long', async () => {
    const endpoint = testEndpoint('test.problems', {
      columns: { name: 'text' },
      sql: "select concat('y', repeat('\u{1f600}', 2500), i) as name from range(2) t(i)",
      more: { alert: { every: '1m', key: ['name'], summary: '{name}' } },
    });
    app = await startAlertApp({ problems: endpoint }, webhook());
    await app.evaluate();
    await received(1);
    expect(receiver.instances().map(each => [each.length, each.isWellFormed()])).toEqual([
      [2008, true],
      [2008, true],
    ]);
  });

  test('that cannot be written makes the evaluation a failed one, and overdue', async () => {
    const running = await start();
    await running.evaluate();
    const file = `${hash('sha256', 'test.problems').slice(0, 32)}.json.new`;
    mkdirSync(join(running.dataDirectory, 'alerts', file), { recursive: true }); // the next write fails
    await running.addProblem('acme');
    await running.evaluate();
    await running.pass(30_000);
    expect(await readMetric(running, 'dendro_alert_evaluations_total{outcome="failed"}')).toBe(1);
    expect(await readMetric(running, 'dendro_alert_evaluation_age_seconds')).toBe(30);
    rmdirSync(join(running.dataDirectory, 'alerts', file));
    await running.pass(30_000);
    await received(1);
    await expect.poll(() => readMetric(running, 'dendro_alert_evaluation_age_seconds')).toBe(0);
  });

  test('is written again after its directory was removed', async () => {
    const running = await start();
    await running.addProblem('acme');
    await running.evaluate();
    await received(1);
    rmSync(join(running.dataDirectory, 'alerts'), { recursive: true });
    await running.addProblem('other');
    await running.evaluate();
    await received(2);
  });

  test('is not written while nothing changes, and not at all while there is no problem', async () => {
    const running = await start();
    await running.evaluate();
    await running.evaluate();
    expect(() => readdirSync(join(running.dataDirectory, 'alerts'))).toThrow('ENOENT');
  });
});

describe('the routes', () => {
  const post = (running: AlertApp, action: string, body: object, token = API_KEY) =>
    fetchResponse(`${running.internalUrl}/api/admin/alerts/${action}`, {
      method: 'POST',
      headers: { 'X-API-KEY': token, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });

  test('show alerts to tokens that may query all projects, with addresses replaced if the token asks for it', async () => {
    const tokens = await createTokens({
      plain: {},
      pinned: { projects: ['acme'] },
      one: { scopes: ['query:logs.all'] },
      redacted: { redact_pii: true, scopes: ['query', 'admin'] },
    });
    app = await startAlertApp({ problems: alertEndpoint({}) }, webhook(), { tokensFile: tokens.file });
    await app.addProblem('10.1.2.3');
    await app.evaluate();
    const ask = async (name: keyof typeof tokens.secrets) => {
      const headers = { 'X-API-KEY': tokens.secrets[name] };
      const { status, text } = (await app?.get('/api/alerts', { headers })) ?? expect.fail();
      return [status, text.includes('10.1.2.3')];
    };
    expect(await ask('plain')).toEqual([200, true]);
    expect(await ask('redacted')).toEqual([200, false]);
    expect(await ask('pinned')).toEqual([403, false]);
    expect(await ask('one')).toEqual([403, false]);
    const tried = await post(app, 'test', { alert: 'test.problems' }, tokens.secrets.redacted);
    expect(tried.rows).toMatchObject({ rows: [{ project: 'REDACTED' }] });
    tokens.remove();
  });

  test('trying an alert whose query fails returns the reason, without its SQL', async () => {
    const tokens = await createTokens({ admin: { scopes: ['admin'] } });
    const endpoint = testEndpoint('test.problems', {
      columns: { count: 'integer' },
      sql: "select 'abc'::bigint as count",
      more: { alert: { every: '1m' } },
    });
    app = await startAlertApp({ problems: endpoint }, {}, { tokensFile: tokens.file });
    const { status, error } = await post(app, 'test', { alert: 'test.problems' }, tokens.secrets.admin);
    expect([status, error.param]).toEqual([400, 'alert']);
    expect(error.message).toMatch(/^the query of the alert fails: .*Could not convert string 'abc' to INT64/);
    expect(error.message).not.toContain('select');
    tokens.remove();
  });

  test('are 404 if alerts are off', async () => {
    app = await startAlertApp({}, {}, { alerts: undefined });
    expect((await app.get('/api/alerts')).error).toMatchObject({ code: 'not_found' });
  });

  test('let only the scope admin silence and try alerts, and try receivers', async () => {
    const tokens = await createTokens({ admin: { scopes: ['admin'] } });
    const { admin } = tokens.secrets;
    app = await startAlertApp({ problems: alertEndpoint({ for: '1h' }) }, webhook(), {
      tokensFile: tokens.file,
    });
    expect((await post(app, 'silence', { alert: 'test.problems', seconds: 60 })).status).toBe(403);
    expect((await post(app, 'other', {}, admin)).status).toBe(404);
    expect((await post(app, 'silence', { alert: 'nothing', seconds: 60 }, admin)).error.param).toBe('alert');
    expect((await post(app, 'silence', { alert: 'test.problems', seconds: 60 }, admin)).rows).toEqual({
      silenced_until: '2026-11-14T12:35:56.789012Z',
    });
    expect(await app.alerts()).toMatchObject([{ silenced_until: '2026-11-14T12:35:56.789012Z' }]);
    await post(app, 'silence', { alert: 'test.problems', seconds: 0 }, admin);
    expect(await app.alerts()).toMatchObject([{ silenced_until: null }]);
    await app.addProblem('acme');
    const tried = (await post(app, 'test', { alert: 'test.problems' }, admin)).rows;
    expect(tried).toMatchObject({
      rows: [{ project: 'acme', count: 1 }],
      notifications: [{ receiver: 'ops', body: { instances: [{ summary: '1 problems in acme' }] } }],
    });
    expect(receiver.requests).toEqual([]);
    expect((await post(app, 'send-test', { receiver: 'ops' }, admin)).rows).toEqual({ error: null });
    expect(receiver.requests[0]?.body).toMatchObject({ alert: 'test', instances: [{ reason: 'test' }] });
    receiver.behaviour = 302;
    expect((await post(app, 'send-test', { receiver: 'ops' }, admin)).rows).toEqual({
      error: 'status 302: redirects are not followed',
    });
    expect((await post(app, 'send-test', { receiver: 'nobody' }, admin)).error.message).toContain(
      'receivers: ops',
    );
    tokens.remove();
  });
});

test('a silence counts only the time after it was set', async () => {
  const tokens = await createTokens({ admin: { scopes: ['admin'] } });
  app = await startAlertApp({ problems: alertEndpoint({ every: '1h' }) }, webhook(), {
    tokensFile: tokens.file,
  });
  await app.evaluate();
  await app.pass(40 * 60_000);
  await app.addProblem('acme');
  await fetchResponse(`${app.internalUrl}/api/admin/alerts/silence`, {
    method: 'POST',
    headers: { 'X-API-KEY': tokens.secrets.admin, 'Content-Type': 'application/json' },
    body: JSON.stringify({ alert: 'test.problems', seconds: 1800 }),
  });
  app.stepClock(-15 * 60_000); // the row is still there
  await app.pass(20 * 60_000);
  await expect.poll(async () => (await app?.alerts())?.[0]).toMatchObject({ state: 'firing' });
  expect(await app.alerts()).toMatchObject([{ silenced_until: expect.any(String), undelivered: 0 }]);
  expect(receiver.requests).toEqual([]);
  tokens.remove();
});

test('bad alerts stop the start with the file, the line and the reason', async () => {
  const cases: readonly [object, string][] = [
    [{ every: '5s' }, 'alert.every: must be a duration from 10s to 1d, such as 30s, 15m or 12h at line'],
    [{ key: ['nothing'] }, 'alert.key.0: there is no column nothing; columns: project, count at line'],
    [{ key: ['severity'] }, 'alert.key.0: severity is a label of Alertmanager itself at line'],
    [{ summary: '{nothing}' }, 'alert.summary: there is no column nothing; columns: project, count at line'],
    [
      { notify: ['nobody'] },
      'alert.notify.0: there is no receiver nobody in the file of --receivers; it has: none',
    ],
    [{ parameters: { a: 1 } }, 'alert.parameters.a: the endpoint has no parameter a at line'],
    [{ other: 1 }, 'alert.other: unknown key at line'],
    [{ no_data: 'alert' }, 'alert.no_data: must be Object, not "alert" at line'],
  ];
  for (const [alert, message] of cases)
    await expect(startAlertApp({ problems: alertEndpoint(alert) }, {})).rejects.toThrow(message);
});

test('endpoints that are written while the server runs are evaluated', async () => {
  app = await startAlertApp({}, webhook());
  writeEndpointFolders({ problems: alertEndpoint({}) }, app.endpointsFolder);
  await app.reloadEndpoints();
  await app.addProblem('acme');
  await app.evaluate();
  await received(1);
});
