// The metrics of the real program, checked by promtool and scraped by a real Prometheus, and everything in deploy/ that uses them.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { METRICS } from '../../src/observe/metric-definitions.ts';
import { testEndpoint, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';
import { ensureProgram, type PrometheusProcess, runPromtool, startPrometheus } from './prometheus.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const ALERTS = join(DEPLOY, 'prometheus/alerts.yml');
const EXAMPLE = join(DEPLOY, 'prometheus/prometheus.yml');
const dashboard = readFileSync(join(DEPLOY, 'grafana/dashboard.json'), 'utf8');

/** Outside CI, a machine without Debian's packages skips these tests. */
const problem = findProblem();
if (problem !== undefined) process.stderr.write(`skipped: ${problem}\n`);

function findProblem(): string | undefined {
  try {
    ensureProgram('promtool');
    ensureProgram('prometheus');
    return undefined;
  } catch (error) {
    if (process.env['CI']) throw error;
    return (error as Error).message;
  }
}

/** An alert that always fires, and a receiver that cannot be reached. Returns the flags for them. */
function prepareAlert(directory: string): string[] {
  const endpoints = join(directory, 'endpoints');
  mkdirSync(endpoints);
  const always = {
    columns: { answer: 'integer' },
    sql: 'select 1 as answer',
    more: { alert: { every: '10s' } },
  };
  writeEndpointFolders({ always: testEndpoint('test.always', always) }, endpoints);
  const receivers = join(directory, 'receivers.yaml');
  writeFileSync(receivers, 'receivers:\n  nobody: { type: slack, url: http://127.0.0.1:1/ }\n', {
    mode: 0o600,
  });
  return ['--endpoints', endpoints, '--alerts', '--receivers', receivers];
}

interface Sample {
  readonly metric: Record<string, string>;
  readonly value: [number, string];
}

describe.skipIf(problem !== undefined)('with Prometheus', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerProcess;
  let prometheus: PrometheusProcess;

  beforeAll(async () => {
    directory = createTempDirectory();
    const data = join(directory.path, 'data');
    server = await startServer(['--data', data, '--project-metrics', ...prepareAlert(directory.path)], {
      env: { DENDRO_API_KEY: PROCESS_API_KEY },
    });
    await sendTraffic();
    const tokenFile = join(directory.path, 'token');
    writeFileSync(tokenFile, PROCESS_API_KEY);
    copyFileSync(ALERTS, join(directory.path, 'alerts.yml'));
    const configuration = readFileSync(EXAMPLE, 'utf8')
      .replace('127.0.0.1:4001', new URL(server.internalUrl).host)
      .replace('/etc/prometheus/dendro-token', tokenFile)
      .replaceAll('15s', '1s');
    prometheus = await startPrometheus(directory.path, configuration);
  });
  afterAll(async () => {
    await prometheus?.stop();
    await server?.stop();
    directory?.remove();
  });

  const headers = { 'X-API-KEY': PROCESS_API_KEY };
  async function sendTraffic(): Promise<void> {
    const body = JSON.stringify([{ project: 'p', message: 'm' }, 7]);
    await fetch(`${server.internalUrl}/api/logs?source_name=edge`, { method: 'POST', headers, body });
    for (const name of ['logs.all?project=p', 'usage.api-counts?project=p&interval=daily', 'logs.all'])
      await fetch(`${server.url}/api/endpoints/query/${name}`, { headers });
    await fetch(`${server.url}/api/endpoints`);
  }
  const query = async (expression: string) =>
    ((await prometheus.get('/api/v1/query', { query: expression })) as { result: Sample[] }).result;

  test('promtool finds no problem in the metrics', async () => {
    const response = await fetch(`${server.internalUrl}/metrics`, { headers });
    const { status, output } = runPromtool(['check', 'metrics'], await response.text());
    expect([status, output]).toEqual([0, '']);
  });

  test('Prometheus scrapes the service with the example configuration, and has every metric', async () => {
    await expect.poll(async () => (await query('up{job="dendro"}'))[0]?.value[1]).toBe('1');
    const expected = Object.entries(METRICS)
      .filter(([, definition]) => !('store' in definition) || definition.store === 'duckdb')
      .map(([name, { type }]) => (type === 'histogram' ? `${name}_bucket` : name));
    const listMissing = async () => {
      const names = await prometheus.get('/api/v1/label/__name__/values');
      return expected.filter(name => !(names as string[]).includes(name));
    };
    await expect.poll(listMissing).toEqual([]);
    const [accepted] = await query('sum(dendro_records_accepted_total)');
    expect(accepted?.value[1]).toBe('1');
    const [refused] = await query('dendro_auth_failures_total{reason="no_token"}');
    expect(refused?.value[1]).toBe('1');
  });

  test('Prometheus loads the alerts and evaluates them without an error', async () => {
    interface Rule {
      readonly name: string;
      readonly health: string;
      readonly lastError?: string;
    }
    const readRules = async () => {
      const { groups } = (await prometheus.get('/api/v1/rules')) as { groups: { rules: Rule[] }[] };
      return groups.flatMap(({ rules }) => rules);
    };
    await expect.poll(async () => (await readRules()).filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(await readRules()).toHaveLength(readFileSync(ALERTS, 'utf8').match(/- alert:/g)?.length ?? 0);
  });

  test('every query of the dashboard runs', async () => {
    const expressions = [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(
      ([, text = '']) => JSON.parse(text) as string,
    );
    expect(expressions.length).toBeGreaterThan(20);
    for (const expression of expressions)
      await query(
        expression
          .replaceAll('$job', 'dendro')
          .replaceAll('$instance', '.*')
          .replaceAll('$__rate_interval', '5s'),
      );
  });
});

describe.skipIf(problem !== undefined)('the files for Prometheus', () => {
  test.each([
    'check rules deploy/prometheus/alerts.yml',
    'test rules test/operations/alerts.test.yml',
    'check config --syntax-only deploy/prometheus/prometheus.yml',
  ])('promtool %s reports no problem', command => {
    const { status, output } = runPromtool(command.split(' '));
    expect(status, output).toBe(0);
  });
});
