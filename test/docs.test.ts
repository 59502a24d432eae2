import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commands } from '../src/cli/commands.ts';
import { FLAGS, type FlagName, isSwitch, KEY_VARIABLES, URL_VARIABLES, variableOf } from '../src/config.ts';
import { loadCatalog } from '../src/endpoint/catalog.ts';
import { STATUS_BY_CODE } from '../src/http/error-response.ts';
import { internalRoutes, publicRoutes } from '../src/http/routes.ts';
import type { RouteDependencies } from '../src/http/serving.ts';
import { EVENTS } from '../src/observe/event.ts';
import { METRICS } from '../src/observe/metric-definitions.ts';
import { BUILT_IN } from './support/custom-endpoints.ts';

// Compares the documentation with the program. The lists come from the code, so nothing new can stay undocumented.

interface Flag {
  readonly value?: string;
  readonly default?: string;
  readonly help: string;
}

const ROOT = join(import.meta.dirname, '..');
const read = (file: string) => {
  const path = join(ROOT, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
};

const CONFIGURATION = 'docs/reference/configuration.md';
const HTTP_API = 'docs/reference/http-api.md';
const CALL_ENDPOINTS = 'docs/call-endpoints.md';
const METRICS_AND_LOGS = 'docs/reference/metrics-and-logs.md';
const configuration = read(CONFIGURATION);
const httpApi = read(HTTP_API);
const callEndpoints = read(CALL_ENDPOINTS);
const metricsAndLogs = read(METRICS_AND_LOGS);

/** Every page of the documentation. */
const pages = [
  ...readdirSync(ROOT).filter(name => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`),
].sort();

/** Matches whole words: neither `--internal-port` nor `--port-range` mentions `--port`. */
const mentions = (text: string, word: string) =>
  new RegExp(`(?<![\\w-])${word.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}(?![\\w-])`).test(text);

function expectMention(file: string, text: string, what: string, word: string): void {
  expect(mentions(text, word), `${file} does not mention the ${what} ${word}`).toBe(true);
}

const catalog = loadCatalog({ builtIn: BUILT_IN, custom: undefined }, 'duckdb');
const dependencies: RouteDependencies = {
  version: '0',
  storeName: 'duckdb',
  catalog,
  serving: () => undefined,
  state: () => 'starting',
  isRecoverable: () => true,
  metricsOpen: false,
  renderMetrics: async () => '',
};
const routes = [...publicRoutes(dependencies), ...internalRoutes(dependencies)].map(({ path }) =>
  path.replace(/\*$/, ''),
);
const flags = Object.keys(FLAGS) as FlagName[];

describe(CONFIGURATION, () => {
  test.each(flags)('documents the flag --%s', flag => {
    expectMention(CONFIGURATION, configuration, 'flag', `--${flag}`);
  });

  test.each(flags.filter(flag => flag !== 'help').map(variableOf))('documents the variable %s', variable => {
    expectMention(CONFIGURATION, configuration, 'variable', variable);
  });

  test.each([...Object.keys(KEY_VARIABLES), ...Object.values(URL_VARIABLES)])(
    'documents the variable %s',
    variable => {
      expectMention(CONFIGURATION, configuration, 'variable', variable);
    },
  );

  test.each(commands.map(({ name }) => name))('documents the command %s', name => {
    const isThere = new RegExp(`(\`|dendro )${name}(?![\\w-])`).test(configuration);
    expect(isThere, `${CONFIGURATION} does not mention the command ${name}`).toBe(true);
  });

  test.each(flags.filter(flag => 'default' in FLAGS[flag]))(
    'documents the default of --%s on its line',
    flag => {
      const { default: fallback = '' }: Flag = FLAGS[flag];
      const lines = configuration.split('\n').filter(line => mentions(line, `--${flag}`));
      const isSaid = lines.some(line => line.includes(fallback));
      expect(isSaid, `no line of ${CONFIGURATION} about --${flag} has its default, ${fallback}`).toBe(true);
    },
  );

  test('documents no flag and no variable that does not exist', () => {
    const known = new Set([...flags.map(flag => `--${flag}`), '--version']);
    const documented = [...configuration.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)].map(([flag]) => flag);
    expect(
      documented.filter(flag => !known.has(flag)),
      `${CONFIGURATION} has flags that do not exist`,
    ).toEqual([]);
    const variables = new Set([
      ...flags.map(variableOf),
      ...Object.keys(KEY_VARIABLES),
      ...Object.values(URL_VARIABLES),
    ]);
    const written = [...configuration.matchAll(/\bDENDRO_[A-Z][A-Z_]*[A-Z]\b/g)].map(([name]) => name);
    expect(
      written.filter(name => !variables.has(name)),
      `${CONFIGURATION} has variables that do not exist`,
    ).toEqual([]);
  });

  test('shows the value of every flag that takes one', () => {
    for (const flag of flags.filter(name => !isSwitch(name))) {
      const { value = '' }: Flag = FLAGS[flag];
      const shape = new RegExp(`--${flag}[\`=| ]+${value.split('=')[0]}`);
      expect(shape.test(configuration), `${CONFIGURATION} does not show --${flag} ${value}`).toBe(true);
    }
  });
});

describe(HTTP_API, () => {
  test.each(Object.entries(STATUS_BY_CODE))(
    'documents the error code %s with its status %i',
    (code, status) => {
      expectMention(HTTP_API, httpApi, 'error code', code);
      const isBeside = httpApi
        .split('\n')
        .some(line => mentions(line, code) && mentions(line, String(status)));
      expect(isBeside, `no line of ${HTTP_API} has both ${code} and ${status}`).toBe(true);
    },
  );

  test.each([...new Set(routes)])('documents the route %s', route => {
    expect(httpApi.includes(route), `${HTTP_API} does not mention the route ${route}`).toBe(true);
  });
});

describe(CALL_ENDPOINTS, () => {
  test.each(catalog.endpoints.map(({ definition }) => [definition.name, definition] as const))(
    'documents the endpoint %s with its UUID, parameters, choices and columns',
    (name, { id, parameters, columns }) => {
      expectMention(CALL_ENDPOINTS, callEndpoints, 'endpoint', name);
      expectMention(CALL_ENDPOINTS, callEndpoints, `UUID of ${name},`, id);
      for (const [parameter, rule] of Object.entries(parameters)) {
        expectMention(CALL_ENDPOINTS, callEndpoints, `parameter of ${name},`, parameter);
        for (const choice of rule.type === 'choice' ? Object.keys(rule.choices) : [])
          expectMention(CALL_ENDPOINTS, callEndpoints, `choice of ${name}'s ${parameter},`, choice);
      }
      for (const column of Object.keys(columns))
        expectMention(CALL_ENDPOINTS, callEndpoints, `column of ${name},`, column);
    },
  );
});

describe(METRICS_AND_LOGS, () => {
  test.each(Object.keys(METRICS))('documents the metric %s in its table', name => {
    expect(metricsAndLogs.split('\n').some(line => line.startsWith(`| \`${name}\` |`))).toBe(true);
  });

  test('documents no metric that does not exist', () => {
    const written = [...metricsAndLogs.matchAll(/\bdendro_[a-z_]+\b/g)].map(([name]) => name);
    expect(written.filter(name => !(name in METRICS))).toEqual([]);
  });

  test('documents every event of the log with its level', () => {
    const rows = [...metricsAndLogs.matchAll(/^\| `(\w+)` \| (error|warn|info) \|/gm)];
    const logged = Object.entries(EVENTS).flatMap(([name, { level }]) =>
      level === undefined ? [] : [[name === 'query_completed' ? 'slow_query' : name, level]],
    );
    expect(Object.fromEntries(rows.map(([, name, level]) => [name, level]))).toEqual(
      Object.fromEntries(logged),
    );
  });
});

describe('deploy/', () => {
  const alerts = read('deploy/prometheus/alerts.yml');

  test.each([...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name))(
    'docs/operate.md says what to do about the alert %s',
    name => expectMention('docs/operate.md', read('docs/operate.md'), 'alert', name),
  );

  test.each(['deploy/prometheus/alerts.yml', 'deploy/grafana/dashboard.json'])(
    '%s uses only metrics that exist',
    file => {
      const used = [...read(file).matchAll(/\bdendro_[a-z_]+(?=[{[\s)])/g)].map(([name]) => name);
      const known = (name: string) => name in METRICS || name.replace(/_(bucket|sum|count)$/, '') in METRICS;
      expect(used.length).toBeGreaterThan(10);
      expect(used.filter(name => !known(name))).toEqual([]);
    },
  );
});

describe('deploy/Dockerfile', () => {
  test('gets every directory that the build reads or the image contains', () => {
    const given = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, name]) => name);
    const copied = [...read('deploy/Dockerfile').matchAll(/--from=build \/src\/(\S+)/g)].map(
      ([, name]) => name,
    );
    const built = ['node_modules', 'dist'];
    const needed = [
      'client',
      'console',
      'scripts',
      'src',
      ...copied.filter(name => !built.includes(`${name}`)),
    ];
    expect(copied.length).toBeGreaterThan(0);
    expect(needed.filter(name => !given.includes(name))).toEqual([]);
  });
});

describe('pages of the documentation', () => {
  test.each(pages.filter(page => page.startsWith('docs/') && page !== METRICS_AND_LOGS))(
    '%s names only metrics that exist',
    page => {
      const written = [...read(page).matchAll(/\bdendro_[a-z_]+_(?:total|bytes|seconds|info)\b/g)].map(
        ([name]) => name,
      );
      expect(written.filter(name => !(name in METRICS))).toEqual([]);
    },
  );

  test.each(pages)('every link in %s leads to a file and a heading that exist', page => {
    const broken = linksOf(read(page)).filter(link => !resolves(page, link));
    expect(broken).toEqual([]);
  });

  test.each(pages)('every test file that %s names exists', page => {
    const named = [...read(page).matchAll(/\btest\/[\w/-]+\.test\.ts\b/g)].map(([file]) => file);
    expect(named.filter(file => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  test('docs/README.md links to every page below docs/', () => {
    const linked = linksOf(read('docs/README.md')).map(link => `docs/${link}`);
    const expected = pages.filter(page => page.startsWith('docs/') && page !== 'docs/README.md');
    expect(expected.filter(page => !page.startsWith('docs/decisions/') && !linked.includes(page))).toEqual(
      [],
    );
  });
});

/** Targets of links and pictures within the repository. */
function linksOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '');
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)].map(
    ([, link, picture]) => link ?? picture ?? '',
  );
  return targets.filter(target => !/^[a-z]+:/.test(target));
}

function resolves(page: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const path = file === '' ? page : join(dirname(page), file);
  if (!existsSync(join(ROOT, path))) return false;
  return anchor === undefined || anchorsOf(read(path)).includes(anchor);
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
