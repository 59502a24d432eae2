import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

// Which module may import which. Imports point down:
// main → cli, app → http → backup, studio → endpoint, intake → store, token → cache, logs, observe → domain, system.
//
//   module                may import, besides itself, domain and system
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['cli', 'config.ts'],
  cli: [
    'type alert',
    'app.ts',
    'backup',
    'config.ts',
    'demo',
    'endpoint',
    'intake',
    'logs',
    'token',
    'store/clickhouse-url.ts',
    'store/migration.ts',
    'store/open-store.ts',
    'store/store.ts',
    'observe',
  ],
  'sample-metrics.ts': ['type config.ts', 'type http', 'type observe', 'type store/store.ts'],
  'app.ts': [
    'alert',
    'config.ts',
    'sample-metrics.ts',
    'http',
    'studio',
    'endpoint',
    'intake',
    'logs',
    'token',
    'cache',
    'store/maintenance.ts',
    'store/open-store.ts',
    'store/store.ts',
    'observe',
  ],
  'config.ts': [
    'type endpoint',
    'observe',
    'store/clickhouse-url.ts',
    'type store/open-store.ts',
    'type store/store.ts',
    'type token',
  ],
  http: [
    'alert',
    'backup',
    'studio',
    'endpoint',
    'intake',
    'logs',
    'token',
    'cache',
    'store/store.ts',
    'observe',
  ],
  alert: ['endpoint', 'store/store.ts', 'observe'],
  backup: ['intake', 'store/open-store.ts', 'store/store.ts', 'observe'],
  demo: ['logs', 'store/store.ts'],
  endpoint: [
    'cache',
    'store/condition.ts',
    'store/condition-sql.ts',
    'store/log-sql.ts',
    'type store/query-parameters.ts',
    'store/required-text.ts',
    'store/store.ts',
    'observe',
  ],
  studio: [
    'endpoint',
    'store/condition-sql.ts',
    'store/log-sql.ts',
    'store/query-queue.ts',
    'store/required-text.ts',
    'type store/store.ts',
  ],
  intake: ['logs', 'store/store.ts', 'observe'],
  logs: ['observe'],
  token: ['observe'],
  cache: ['observe'],
  'store/open-store.ts': [
    'type store/duckdb',
    'lazy store/duckdb',
    'type store/clickhouse',
    'lazy store/clickhouse',
    'store/clickhouse-url.ts',
    'store/store.ts',
  ],
  'store/store.ts': ['type store/query-parameters.ts', 'type store/required-text.ts', 'type observe'],
  'store/condition.ts': [],
  'store/log-sql.ts': ['store/condition.ts', 'type store/store.ts'],
  'store/condition-sql.ts': [
    'type store/condition.ts',
    'type store/log-sql.ts',
    'store/required-text.ts',
    'type store/store.ts',
  ],
  'store/required-text.ts': ['type store/condition.ts'],
  'store/clickhouse-url.ts': [],
  'store/insert-with-bisect.ts': [],
  'store/query-queue.ts': ['store/store.ts'],
  'store/batch-lines.ts': [],
  'store/results.ts': ['store/store.ts'],
  'store/query-parameters.ts': ['type store/store.ts'],
  'store/newest-timestamp.ts': ['type store/store.ts'],
  'store/migration.ts': ['store/store.ts'],
  'store/maintenance.ts': ['store/store.ts', 'observe'],
  'store/duckdb': [
    'store/store.ts',
    'store/condition-sql.ts',
    'store/log-sql.ts',
    'store/batch-lines.ts',
    'store/results.ts',
    'store/insert-with-bisect.ts',
    'store/newest-timestamp.ts',
    'store/query-parameters.ts',
    'store/required-text.ts',
    'store/query-queue.ts',
    'observe',
  ],
  'store/clickhouse': [
    'store/store.ts',
    'store/clickhouse-url.ts',
    'store/log-sql.ts',
    'store/batch-lines.ts',
    'store/results.ts',
    'store/insert-with-bisect.ts',
    'store/newest-timestamp.ts',
    'store/query-parameters.ts',
    'store/query-queue.ts',
    'observe',
  ],
  observe: [],
  // Shared by every module: domain imports nothing but itself, system also imports domain.
  domain: [],
  system: ['domain'],
};

const SHARED = ['domain', 'system'];

// Which module may import which package.
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@clickhouse/client': ['store/clickhouse'],
  '@duckdb/node-api': [
    'store/duckdb',
    'lazy logs/read-parquet.ts',
    'lazy studio/parse-sql.ts',
    'type studio/parse-sql.ts',
  ],
  'prom-client': ['observe'],
  valibot: ['alert', 'endpoint', 'store/duckdb', 'token'],
  yaml: ['endpoint', 'http'],
};

const SRC = join(import.meta.dirname, '../src');

interface Import {
  readonly from: string;
  /** A path below src, or the name of a package. */
  readonly to: string;
  /** `type`: does not exist at run time; `lazy`: a dynamic import. */
  readonly how: 'type' | 'lazy' | 'plain';
}

const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .map(file => file.split(sep).join('/'))
  .filter(file => file.endsWith('.ts'))
  .sort();
const TEXTS = new Map(FILES.map(file => [file, readFileSync(join(SRC, file), 'utf8')]));
const IMPORTS = FILES.flatMap(file => importsOf(file, textOf(file)));

describe('imports between modules', () => {
  test('every file of src belongs to a module of the table', () => {
    expect(FILES.filter(file => moduleOf(file) === undefined)).toEqual([]);
  });

  test('every import is allowed by the table', () => {
    const wrong = IMPORTS.filter(({ to }) => TEXTS.has(to)).filter(({ from, to, how }) => {
      const importer = moduleOf(from);
      const target = moduleOf(to);
      if (importer === target || (SHARED.includes(`${target}`) && !SHARED.includes(`${importer}`)))
        return false;
      const allowed = importer === undefined ? [] : (MAY_IMPORT[importer] ?? []);
      return !allowed.includes(`${target}`) && !allowed.includes(`${how} ${target}`);
    });
    expect(wrong.map(describeImport)).toEqual([]);
  });
});

describe('imports of packages', () => {
  const bare = IMPORTS.filter(({ to }) => !to.endsWith('.ts') && !to.startsWith('node:'));

  test('every package is imported only by the modules of the table', () => {
    const wrong = bare.filter(({ from, to, how }) => {
      const allowed = PACKAGES[to] ?? [];
      return ![from, moduleOf(from)].some(
        who => allowed.includes(`${who}`) || allowed.includes(`${how} ${who}`),
      );
    });
    expect(wrong.map(describeImport)).toEqual([]);
  });

  test('every imported package is a dependency, and every dependency is imported', () => {
    const file = readFileSync(join(SRC, '../package.json'), 'utf8');
    const { dependencies } = JSON.parse(file) as { dependencies: Record<string, string> };
    expect([...new Set(bare.map(({ to }) => to))].sort()).toEqual(Object.keys(dependencies).sort());
  });

  test('only http/ imports node:http', () => {
    const httpImports = IMPORTS.filter(({ to }) => /^node:(http|https|http2)$/.test(to));
    expect(httpImports.filter(({ from }) => moduleOf(from) !== 'http').map(describeImport)).toEqual([]);
    expect(httpImports.length).toBeGreaterThan(0);
  });
});

describe('rules about the content of source files', () => {
  const filesWith = (pattern: RegExp) => FILES.filter(file => pattern.test(withoutComments(textOf(file))));

  test('only config.ts and main.ts read the environment and the command line', () => {
    expect(filesWith(/\bprocess\s*\.\s*(env|argv)\b/)).toEqual(['main.ts']);
    expect(filesWith(/import\s*\{[^}]*\b(env|argv)\b[^}]*\}\s*from 'node:process'/)).toEqual([]);
  });

  test('SQL is in .sql files and in the directories of the stores', () => {
    const STATEMENT =
      /['"`]\s*(select\s|with\s+\w+\s+as\s*\(|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|create\s+(or\s+replace\s+)?(table|view)\s|drop\s+(table|view)\s|alter\s+table\s|attach\s+['$]|copy\s+[\w(].*\s(to|from)\s|begin\s+transaction)/i;
    const elsewhere = [
      'logs/read-parquet.ts',
      'store/migration.ts',
      'store/log-sql.ts',
      'studio/parse-sql.ts',
      'studio/query-sql.ts',
    ];
    // The log records of the demo have SQL as text. Nothing runs it.
    const filesWithSql = filesWith(STATEMENT).filter(
      file => !elsewhere.includes(file) && moduleOf(file) !== 'demo',
    );
    expect(filesWithSql.filter(file => !/^store\/(duckdb|clickhouse)$/.test(moduleOf(file) ?? ''))).toEqual(
      [],
    );
    expect(filesWithSql).not.toEqual([]);
  });

  test('only the clock reads the current time', () => {
    expect(filesWith(/\bDate\.now\(|\bnew Date\(\)/)).toEqual(['system/clock.ts']);
  });

  test('every file starts with a comment that says what it is for', () => {
    expect(FILES.filter(file => !textOf(file).startsWith('// '))).toEqual([]);
  });
});

describe('the console', () => {
  const CONSOLE = join(SRC, '../console');
  const files = readdirSync(CONSOLE, { recursive: true, encoding: 'utf8' })
    .filter(file => /\.(ts|js|css)$/.test(file))
    .map(file => ({ file, text: readFileSync(join(CONSOLE, file), 'utf8') }));

  test('imports nothing from src, only the typed client, and no package but uplot', () => {
    const imported = files.flatMap(({ file, text }) =>
      [...text.matchAll(/^import\s+(?:[^']*\sfrom\s+)?'([^']+)'/gm)].map(([, to = '']) =>
        to.startsWith('.') ? posix.normalize(posix.join(dirname(file), to)) : `package ${to.split('/')[0]}`,
      ),
    );
    const outside = imported.filter(to => to.startsWith('..'));
    expect([...new Set(outside)]).toEqual(['../client/index.ts']);
    expect([...new Set(imported.filter(to => to.startsWith('package')))]).toEqual(['package uplot']);
  });

  test('every file starts with a comment that says what it is for', () => {
    expect(files.filter(({ text }) => !/^(\/\/|\/\*) /.test(text)).map(({ file }) => file)).toEqual([]);
  });

  test('only api/client.ts sends requests and creates a client, only token.ts stores the token, only what the user chose outlives the tab, and nothing is parsed as HTML', () => {
    const filesWith = (pattern: RegExp) =>
      files.filter(({ text }) => pattern.test(text)).map(({ file }) => file);
    expect(filesWith(/\bfetch\(|XMLHttpRequest|sendBeacon|EventSource|WebSocket\(/)).toEqual([
      'api/client.ts',
    ]);
    expect(filesWith(/\bcreateClient\b/)).toEqual(['api/client.ts']);
    expect(filesWith(/dendro\.token/)).toEqual(['token.ts']);
    expect(filesWith(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/)).toEqual([]);
    const kept = [
      'initial-theme.js',
      'theme.ts',
      'token.ts',
      'logs/result-card.ts',
      'logs/saved-searches.ts',
    ];
    expect(filesWith(/localStorage/)).toEqual(kept);
  });
});

describe('the typed client', () => {
  const CLIENT = join(SRC, '../client');
  const files = readdirSync(CLIENT)
    .filter(file => file.endsWith('.ts'))
    .map(file => ({ file, text: readFileSync(join(CLIENT, file), 'utf8') }));

  test('imports nothing but its own files, so that it works in Node and in browsers', () => {
    const imported = files.flatMap(({ text }) =>
      [...text.matchAll(/\bfrom '([^']+)'/g)].map(([, to = '']) => to),
    );
    expect(imported.length).toBeGreaterThan(0);
    expect(imported.filter(to => !/^\.\/[\w-]+\.ts$/.test(to))).toEqual([]);
  });

  test('every file starts with a comment that says what it is for', () => {
    expect(files.filter(({ text }) => !text.startsWith('// ')).map(({ file }) => file)).toEqual([]);
  });
});

function textOf(file: string): string {
  return TEXTS.get(file) ?? '';
}

/** The module of the table that a file belongs to. */
function moduleOf(file: string): string | undefined {
  return Object.keys(MAY_IMPORT).find(module => file === module || file.startsWith(`${module}/`));
}

function importsOf(file: string, text: string): Import[] {
  const code = withoutComments(text);
  const found: Import[] = [];
  for (const [, type, names = '', specifier = ''] of code.matchAll(
    /^(?:import|export)\s+(type\s+)?(\w+|\*(?: as \w+)?|\{[^}]*\})\s+from\s+'([^']+)'/gm,
  )) {
    const list = /^\{([^}]*)\}$/
      .exec(names)?.[1]
      ?.split(',')
      .filter(name => name.trim() !== '');
    const isType = type !== undefined || (list?.every(name => name.trim().startsWith('type ')) ?? false);
    found.push({ from: file, to: resolve(file, specifier), how: isType ? 'type' : 'plain' });
  }
  for (const [, specifier = ''] of code.matchAll(/\bimport\(\s*'([^']+)'/g))
    found.push({ from: file, to: resolve(file, specifier), how: 'lazy' });
  return found;
}

function resolve(file: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.normalize(posix.join(dirname(file), specifier)) : specifier;
}

function withoutComments(text: string): string {
  // Comments start a line or follow code; /api/* and https:// in strings are not comments.
  return text.replace(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, '').replace(/(^|[ ;,{])\/\/ .*$/gm, '$1');
}

function describeImport({ from, to, how }: Import): string {
  return `${from} → ${to}${how === 'plain' ? '' : ` (${how})`}`;
}
