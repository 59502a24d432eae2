// Sends the requests of the Grafana dashboard as the Infinity data source would, and reads the responses as its panels do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NOW, startTestApp, type TestApp } from './support/app.ts';
import { sendLogs } from './support/logs.ts';

interface Target {
  readonly url: string;
  readonly url_options: { readonly params: readonly { readonly key: string; readonly value: string }[] };
  readonly root_selector: string;
  readonly columns: readonly {
    readonly selector: string;
    readonly type: 'timestamp' | 'number' | 'string';
  }[];
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly Target[] }[];
  readonly templating: { readonly list: readonly Variable[] };
}

interface Variable {
  readonly name: string;
  readonly query: string;
  readonly type: string;
  readonly options?: readonly { readonly value: string }[];
}

const FILE = join(import.meta.dirname, '../deploy/grafana/project-dashboard.json');
const dashboard = JSON.parse(readFileSync(FILE, 'utf8')) as Dashboard;
const variables = dashboard.templating.list;
const targets = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(target => ({ title, ...target })),
);

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  const request = { url: 'https://abc.example/rest/v1/a', path: '/rest/v1/a' };
  await sendLogs(app.internalUrl, [{ project: 'abc', message: 'edge', metadata: { request } }]);
  const metadata = {
    project_ref: 'abc',
    function_id: 'f',
    execution_time_ms: 5,
    response: { status_code: 500 },
  };
  await sendLogs(app.internalUrl, [{ message: 'call', metadata }], { query: '?source_name=function_edge' });
});
afterAll(() => app.close());

const GLOBALS: Readonly<Record<string, string>> = {
  '__from:date:iso': new Date(Date.parse(NOW) - 3_600_000).toISOString(),
  '__to:date:iso': new Date(Date.parse(NOW) + 1_000).toISOString(),
};

/** Replaces variables by their default values, or by `chosen`. */
const interpolate = (text: string, chosen: Readonly<Record<string, string>>) =>
  text.replace(/\$\{([^}]+)\}/g, (_, name: string) => {
    const value = chosen[name] ?? GLOBALS[name] ?? defaultOf(name);
    if (value === undefined) throw new Error(`the dashboard uses the unknown variable ${name}`);
    return value;
  });
const defaultOf = (name: string) => {
  const variable = variables.find(each => each.name === name);
  return variable?.type === 'custom' ? variable.options?.[0]?.value : variable?.query;
};

async function run(
  { url, url_options, root_selector }: Target,
  chosen: Readonly<Record<string, string>> = {},
) {
  const query = new URLSearchParams(
    url_options.params.map(({ key, value }): [string, string] => [key, interpolate(value, chosen)]),
  );
  const { status, text } = await app.get(`${interpolate(url, chosen)}?${query}`);
  return { status, rows: JSON.parse(text)[root_selector] as Record<string, unknown>[] };
}

test.each(targets)('the panel "$title" gets rows with its columns', async target => {
  await expect.poll(async () => (await run(target)).rows).toHaveLength(1);
  const { status, rows } = await run(target);
  expect(status).toBe(200);
  for (const { selector, type } of target.columns) {
    const value = rows[0]?.[selector];
    if (type === 'timestamp') {
      expect(value).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      expect(Math.abs(Date.parse(String(value)) - Date.parse(NOW))).toBeLessThanOrEqual(60_000);
    } else expect(typeof value, selector).toBe(type);
  }
});

describe('variables', () => {
  const choices = variables.flatMap(({ name, options = [] }) =>
    options.map(({ value }) => ({ name, value })),
  );

  test.each(choices)('the choice $value of $name is a choice of the endpoint', async ({ name, value }) => {
    const using = targets.filter(({ url_options }) =>
      url_options.params.some(param => param.value === `\${${name}}`),
    );
    expect(using.length).toBeGreaterThan(0);
    for (const target of using) {
      expect((await run(target, { [name]: value })).status).toBe(200);
      const endpointName = target.url.split('/').at(-1);
      const { rows } = await app.get('/api/endpoints');
      const endpoint = rows.find(row => row['name'] === endpointName) as {
        parameters: { name: string; choices?: string[] }[];
      };
      const parameter = target.url_options.params.find(param => param.value === `\${${name}}`)?.key;
      expect(endpoint.parameters.find(each => each.name === parameter)?.choices).toContain(value);
    }
  });

  test('the names of the data source and of the header are those of the recipe', () => {
    const provisioning = readFileSync(join(import.meta.dirname, '../deploy/grafana/datasource.yaml'), 'utf8');
    expect(provisioning).toContain(`type: ${variables.find(({ type }) => type === 'datasource')?.query}`);
    expect(provisioning).toContain('apiKeyKey: X-API-KEY');
  });
});
