// An application with one alert, and a receiver that gets its notifications.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import type { ServeConfig } from '../../src/config.ts';
import { startTestApp, type TestApp } from './app.ts';
import { BUILT_IN, type EndpointFiles, testEndpoint, writeEndpointFolders } from './custom-endpoints.ts';
import { ManualTimer } from './manual-timer.ts';
import { edgeRecord } from './record.ts';

/** Its rows are the projects with records of kind edge in the last 10 minutes. */
export function alertEndpoint(alert: object, name = 'test.problems', more: object = {}): EndpointFiles {
  return testEndpoint(name, {
    columns: { project: 'text', count: 'integer' },
    sql: "select project, count(*) as count from edge_logs where timestamp > $now - interval '10 minutes' group by 1 order by 1",
    more: {
      alert: { every: '1m', key: ['project'], summary: '{count} problems in {project}', ...alert },
      ...more,
    },
  });
}

export interface AlertApp extends TestApp {
  readonly endpointsFolder: string;
  readonly receiversFile: string;
  writeReceivers(receivers: object): void;
  /**
   * Lets a minute pass, after which an alert with `every: 1m` is evaluated; the first time, it is evaluated at once. The clock moves by
   * `ms`.
   */
  evaluate(ms?: number): Promise<void>;
  /** Lets time pass while an evaluation runs. */
  skip(ms: number): void;
  /** Stores a record of kind edge with the current time: the project has a problem for 10 minutes. */
  addProblem(...projects: string[]): Promise<void>;
  alerts(): Promise<Record<string, unknown>[]>;
}

export async function startAlertApp(
  endpoints: Readonly<Record<string, EndpointFiles>>,
  receivers: object,
  overrides: Partial<ServeConfig> = {},
  consoleUrl = 'https://logs.example.com',
): Promise<AlertApp> {
  const folder = mkdtempSync(join(tmpdir(), 'dendro-alerts-'));
  const receiversFile = join(folder, 'receivers.yaml');
  const endpointsFolder = join(folder, 'endpoints');
  mkdirSync(endpointsFolder);
  writeEndpointFolders(endpoints, endpointsFolder);
  const writeReceivers = (content: object) => {
    writeFileSync(receiversFile, stringify({ receivers: content }));
    chmodSync(receiversFile, 0o600);
  };
  writeReceivers(receivers);
  const timer = new ManualTimer();
  const app = await startTestApp(
    {
      endpointFolders: { builtIn: BUILT_IN, custom: endpointsFolder },
      alerts: {
        receiversFile,
        consoleUrl,
        readVariable: name => VARIABLES[name],
      },
      ...overrides,
    },
    timer,
  );
  const evaluations = () => app.events.filter(({ type }) => type === 'alert_evaluated').length;
  return {
    ...app,
    endpointsFolder,
    receiversFile,
    writeReceivers,
    async evaluate(ms = 60_000) {
      const before = evaluations();
      if (before > 0) app.stepClock(ms - 60_000);
      await app.pass(before === 0 ? 0 : 60_000);
      await expect.poll(evaluations).toBeGreaterThan(before);
    },
    skip: ms => timer.skip(ms),
    async addProblem(...projects) {
      await app.append(
        'edge',
        projects.map(project => edgeRecord({ project, at: app.now() })),
      );
    },
    async alerts() {
      return (await app.get('/api/alerts')).rows;
    },
    async close() {
      await app.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const VARIABLES: Readonly<Record<string, string>> = {
  TEST_SECRET: 'the-secret-of-the-tests',
  TEST_AUTH: 'Bearer x',
};
