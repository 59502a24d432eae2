import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commands } from '../src/cli/commands.ts';
import { FLAGS, type FlagName, isSwitch, variableOf } from '../src/config.ts';
import { loadCatalog } from '../src/endpoint/catalog.ts';
import { STATUS_BY_CODE } from '../src/http/error-response.ts';
import { type InternalDependencies, internalRoutes } from '../src/http/internal-routes.ts';
import { publicRoutes } from '../src/http/public-routes.ts';
import { METRICS } from '../src/observe/metrics.ts';
import { BUILT_IN } from './support/own-endpoints.ts';

// What users can see of the code has its line in the documentation: the code's own tables are read, so that nothing
// new can be forgotten there.

interface Flag {
  readonly value?: string;
  readonly default?: string;
  readonly help: string;
}

const read = (file: string) => {
  const path = join(import.meta.dirname, '..', file);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
};

const configuration = read('docs/configuration.md');
const api = read('docs/api.md');
const operations = read('docs/operations.md');

/** As a word of its own: `--port` is not documented by `--internal-port`, nor by `--port-range`. */
const mentions = (text: string, word: string) =>
  new RegExp(`(?<![\\w-])${word.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}(?![\\w-])`).test(text);

function expectMention(file: string, text: string, what: string, word: string): void {
  expect(mentions(text, word), `${file} does not mention the ${what} ${word}`).toBe(true);
}

const catalog = loadCatalog({ builtIn: BUILT_IN, custom: undefined }, 'duckdb');
const parts: InternalDependencies = {
  version: '0',
  storeName: 'duckdb',
  catalog,
  service: () => undefined,
  state: () => 'starting',
  metricsOpen: false,
  renderMetrics: () => '',
};
const routes = [...publicRoutes(parts), ...internalRoutes(parts)].map(({ path }) => path.replace(/\*$/, ''));
const flags = Object.keys(FLAGS) as FlagName[];

describe('docs/configuration.md', () => {
  test.each(flags)('has the flag --%s', flag => {
    expectMention('docs/configuration.md', configuration, 'flag', `--${flag}`);
  });

  test.each(flags.filter(flag => flag !== 'help').map(variableOf))('has the variable %s', variable => {
    expectMention('docs/configuration.md', configuration, 'variable', variable);
  });

  test('has the variable DENDRO_API_KEY', () => {
    expectMention('docs/configuration.md', configuration, 'variable', 'DENDRO_API_KEY');
  });

  test.each(commands.map(({ name }) => name))('has the command %s', name => {
    const isThere = new RegExp(`(\`|dendro )${name}(?![\\w-])`).test(configuration);
    expect(isThere, `docs/configuration.md does not mention the command ${name}`).toBe(true);
  });

  test.each(flags.filter(flag => 'default' in FLAGS[flag]))('has the default of --%s on its line', flag => {
    const { default: fallback = '' }: Flag = FLAGS[flag];
    const lines = configuration.split('\n').filter(line => mentions(line, `--${flag}`));
    const isSaid = lines.some(line => line.includes(fallback));
    expect(isSaid, `no line of docs/configuration.md on --${flag} has its default, ${fallback}`).toBe(true);
  });

  test('has no flag and no variable that the code does not know', () => {
    const known = new Set([...flags.map(flag => `--${flag}`), '--version']);
    const strange = [...configuration.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)].map(([flag]) => flag);
    expect(
      strange.filter(flag => !known.has(flag)),
      'docs/configuration.md speaks of flags that do not exist',
    ).toEqual([]);
    const variables = new Set([...flags.map(variableOf), 'DENDRO_API_KEY']);
    const written = [...configuration.matchAll(/\bDENDRO_[A-Z][A-Z_]*[A-Z]\b/g)].map(([name]) => name);
    expect(
      written.filter(name => !variables.has(name)),
      'docs/configuration.md speaks of variables that do not exist',
    ).toEqual([]);
  });

  test('every switch is told from a flag with a value', () => {
    for (const flag of flags.filter(name => !isSwitch(name))) {
      const { value = '' }: Flag = FLAGS[flag];
      const shape = new RegExp(`--${flag}[\`=| ]+${value.split('=')[0]}`);
      expect(shape.test(configuration), `docs/configuration.md does not show --${flag} ${value}`).toBe(true);
    }
  });
});

describe('docs/api.md', () => {
  test.each(Object.entries(STATUS_BY_CODE))('has the error code %s with its status %i', (code, status) => {
    expectMention('docs/api.md', api, 'error code', code);
    const isBeside = api.split('\n').some(line => mentions(line, code) && mentions(line, String(status)));
    expect(isBeside, `no line of docs/api.md has both ${code} and ${status}`).toBe(true);
  });

  test.each([...new Set(routes)])('has the route %s', route => {
    expect(api.includes(route), `docs/api.md does not mention the route ${route}`).toBe(true);
  });

  test.each(catalog.endpoints.map(({ definition }) => [definition.name, definition] as const))(
    'has the endpoint %s with its UUID, parameters, choices and columns',
    (name, { id, parameters, columns }) => {
      expectMention('docs/api.md', api, 'endpoint', name);
      expectMention('docs/api.md', api, `UUID of ${name},`, id);
      for (const [parameter, rule] of Object.entries(parameters)) {
        expectMention('docs/api.md', api, `parameter of ${name},`, parameter);
        for (const choice of rule.type === 'choice' ? Object.keys(rule.choices) : [])
          expectMention('docs/api.md', api, `choice of ${name}'s ${parameter},`, choice);
      }
      for (const column of Object.keys(columns))
        expectMention('docs/api.md', api, `column of ${name},`, column);
    },
  );
});

describe('docs/operations.md', () => {
  test.each(Object.keys(METRICS))('has the metric %s in its table', name => {
    expect(operations.split('\n').some(line => line.startsWith(`| \`${name}\` |`))).toBe(true);
  });

  test('has no metric that the code does not know', () => {
    const written = [...operations.matchAll(/\bdendro_[a-z_]+\b/g)].map(([name]) => name);
    expect(written.filter(name => !(name in METRICS))).toEqual([]);
  });
});
