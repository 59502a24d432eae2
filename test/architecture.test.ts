import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

// Which module may import which. Imports point down:
// main → cli, app → http → endpoint, intake → store, token → cache, logs, observe → domain, system.
//
//   module                may import, besides itself, domain and system
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['cli', 'config.ts'],
  cli: [
    'app.ts',
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
  'app.ts': [
    'config.ts',
    'http',
    'endpoint',
    'intake',
    'logs',
    'token',
    'cache',
    'store/retention.ts',
    'store/maintenance.ts',
    'store/open-store.ts',
    'store/store.ts',
    'observe',
  ],
  'config.ts': [
    'type endpoint',
    'store/clickhouse-url.ts',
    'type store/open-store.ts',
    'type store/store.ts',
  ],
  http: ['endpoint', 'intake', 'logs', 'token', 'cache', 'store/store.ts', 'observe'],
  demo: ['logs', 'store/store.ts'],
  endpoint: ['cache', 'store/store.ts', 'observe'],
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
  'store/store.ts': [],
  'store/clickhouse-url.ts': [],
  'store/insert-with-bisect.ts': [],
  'store/query-queue.ts': ['store/store.ts'],
  'store/batch-lines.ts': [],
  'store/column-types.ts': ['store/store.ts'],
  'store/newest-timestamp.ts': [],
  'store/migration.ts': ['store/store.ts'],
  'store/retention.ts': ['store/store.ts', 'observe'],
  'store/maintenance.ts': ['store/store.ts', 'observe'],
  'store/duckdb': [
    'store/store.ts',
    'store/batch-lines.ts',
    'store/column-types.ts',
    'store/insert-with-bisect.ts',
    'store/newest-timestamp.ts',
    'store/query-queue.ts',
    'observe',
  ],
  'store/clickhouse': [
    'store/store.ts',
    'store/clickhouse-url.ts',
    'store/batch-lines.ts',
    'store/column-types.ts',
    'store/insert-with-bisect.ts',
    'store/newest-timestamp.ts',
    'store/query-queue.ts',
    'observe',
  ],
  observe: [],
  // Shared by every module: domain imports nothing but itself, system also imports domain.
  domain: [],
  system: ['domain'],
};

const SHARED = ['domain', 'system'];

// Packages with a native library or a vocabulary of their own, and who may use them.
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@clickhouse/client': ['store/clickhouse'],
  '@duckdb/node-api': ['store/duckdb', 'lazy logs/read-parquet.ts'],
  'js-yaml': ['endpoint'],
  valibot: ['endpoint', 'token'],
};

const SRC = join(import.meta.dirname, '../src');

interface Import {
  readonly from: string;
  /** A path below src, or the name of a package. */
  readonly to: string;
  /** `type` is gone when the program runs; `lazy` is loaded when it is called for. */
  readonly how: 'type' | 'lazy' | 'plain';
}

const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .map(file => file.split(sep).join('/'))
  .filter(file => file.endsWith('.ts'))
  .sort();
const TEXTS = new Map(FILES.map(file => [file, readFileSync(join(SRC, file), 'utf8')]));
const IMPORTS = FILES.flatMap(file => importsOf(file, textOf(file)));

describe('the arrows', () => {
  test('every file of src has its line in the table', () => {
    expect(FILES.filter(file => partOf(file) === undefined)).toEqual([]);
  });

  test('every import goes where the table lets it', () => {
    const wrong = IMPORTS.filter(({ to }) => TEXTS.has(to)).filter(({ from, to, how }) => {
      const part = partOf(from);
      const target = partOf(to);
      if (part === target || (SHARED.includes(`${target}`) && !SHARED.includes(`${part}`))) return false;
      const allowed = part === undefined ? [] : (MAY_IMPORT[part] ?? []);
      return !allowed.includes(`${target}`) && !allowed.includes(`${how} ${target}`);
    });
    expect(wrong.map(describeImport)).toEqual([]);
  });

  test('imports below src are of files that exist, by their whole name', () => {
    const missing = IMPORTS.filter(({ to }) => to.endsWith('.ts') && !TEXTS.has(to));
    expect(missing.map(describeImport)).toEqual([]);
  });

  test('no file imports itself by a detour', () => {
    expect(FILES.flatMap(file => findCycle(file))).toEqual([]);
  });
});

describe('packages', () => {
  const bare = IMPORTS.filter(({ to }) => !to.endsWith('.ts') && !to.startsWith('node:'));

  test('are used only where the table lets them', () => {
    const wrong = bare.filter(({ from, to, how }) => {
      const allowed = PACKAGES[to] ?? [];
      return ![from, partOf(from)].some(
        who => allowed.includes(`${who}`) || allowed.includes(`${how} ${who}`),
      );
    });
    expect(wrong.map(describeImport)).toEqual([]);
  });

  test('are dependencies, and every dependency is used', () => {
    const file = readFileSync(join(SRC, '../package.json'), 'utf8');
    const { dependencies } = JSON.parse(file) as { dependencies: Record<string, string> };
    expect([...new Set(bare.map(({ to }) => to))].sort()).toEqual(Object.keys(dependencies).sort());
  });

  test('nothing but http/ knows HTTP', () => {
    const knowing = IMPORTS.filter(({ to }) => /^node:(http|https|http2)$/.test(to));
    expect(knowing.filter(({ from }) => partOf(from) !== 'http').map(describeImport)).toEqual([]);
    expect(knowing.length).toBeGreaterThan(0);
  });
});

describe('what stands where', () => {
  const filesWith = (pattern: RegExp) => FILES.filter(file => pattern.test(withoutComments(textOf(file))));

  test('only config.ts and main.ts read the environment and the command line', () => {
    expect(filesWith(/\bprocess\s*\.\s*(env|argv)\b/)).toEqual(['main.ts']);
    expect(filesWith(/import\s*\{[^}]*\b(env|argv)\b[^}]*\}\s*from 'node:process'/)).toEqual([]);
  });

  test('SQL stands in .sql files; only the folder of a store talks to its engine in between', () => {
    const STATEMENT =
      /['"`]\s*(select\s|with\s+\w+\s+as\s*\(|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|create\s+(or\s+replace\s+)?(table|view)\s|drop\s+(table|view)\s|alter\s+table\s|attach\s+['$]|copy\s+[\w(].*\s(to|from)\s|begin\s+transaction)/i;
    const talking = filesWith(STATEMENT).filter(file => file !== 'logs/read-parquet.ts');
    expect(talking.filter(file => !/^store\/(duckdb|clickhouse)$/.test(partOf(file) ?? ''))).toEqual([]);
    expect(talking).not.toEqual([]);
  });

  test('time is asked of the clock alone', () => {
    expect(filesWith(/\bDate\.now\(|\bnew Date\(\)/)).toEqual(['system/clock.ts']);
  });

  test('every file opens with a line that says what it is for', () => {
    expect(FILES.filter(file => !textOf(file).startsWith('// '))).toEqual([]);
  });
});

describe('the console', () => {
  const CONSOLE = join(SRC, '../console');
  const files = readdirSync(CONSOLE, { recursive: true, encoding: 'utf8' })
    .filter(file => /\.(ts|css)$/.test(file))
    .map(file => ({ file, text: readFileSync(join(CONSOLE, file), 'utf8') }));

  test('imports nothing of src, and no package but the one that draws', () => {
    const imported = files.flatMap(({ file, text }) =>
      [...text.matchAll(/^import\s+(?:[^']*\sfrom\s+)?'([^']+)'/gm)].map(([, to = '']) =>
        to.startsWith('.') ? posix.normalize(posix.join(dirname(file), to)) : `package ${to.split('/')[0]}`,
      ),
    );
    expect(imported.filter(to => to.startsWith('..'))).toEqual([]);
    expect([...new Set(imported.filter(to => to.startsWith('package')))]).toEqual(['package uplot']);
  });

  test('has no file of more than 300 lines, and each opens with a line that says what it is for', () => {
    expect(files.filter(({ text }) => text.split('\n').length > 301).map(({ file }) => file)).toEqual([]);
    expect(files.filter(({ text }) => !/^(\/\/|\/\*) /.test(text)).map(({ file }) => file)).toEqual([]);
  });

  test('only client.ts calls, only token.ts holds the token, and nothing is parsed as HTML', () => {
    const filesWith = (pattern: RegExp) =>
      files.filter(({ text }) => pattern.test(text)).map(({ file }) => file);
    expect(filesWith(/\bfetch\(|XMLHttpRequest|sendBeacon|EventSource|WebSocket\(/)).toEqual([
      'api/client.ts',
    ]);
    expect(filesWith(/dendro\.token/)).toEqual(['token.ts']);
    expect(filesWith(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|localStorage/)).toEqual(
      [],
    );
  });
});

function textOf(file: string): string {
  return TEXTS.get(file) ?? '';
}

/** The line of the table that a file belongs to. */
function partOf(file: string): string | undefined {
  return Object.keys(MAY_IMPORT).find(part => file === part || file.startsWith(`${part}/`));
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
  // Only those that begin a line, or stand behind code: '/api/*' and 'https://' are no comments.
  return text.replace(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, '').replace(/(^|[ ;,{])\/\/ .*$/gm, '$1');
}

function describeImport({ from, to, how }: Import): string {
  return `${from} → ${to}${how === 'plain' ? '' : ` (${how})`}`;
}

/** The way by which a file imports itself, if there is one. Types are gone at run time and make no circle. */
function findCycle(start: string): string[] {
  const seen = new Set<string>();
  const walk = (file: string, way: readonly string[]): string[] => {
    for (const { to, how } of IMPORTS.filter(({ from }) => from === file)) {
      if (how === 'type') continue;
      if (to === start) return [[...way, to].join(' → ')];
      if (seen.has(to)) continue;
      seen.add(to);
      const found = walk(to, [...way, to]);
      if (found.length > 0) return found;
    }
    return [];
  };
  return walk(start, [relative('', start)]);
}
