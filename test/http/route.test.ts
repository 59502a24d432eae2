import { describe, expect, test } from 'vitest';
import { DendroError } from '../../src/errors.ts';
import { type Route, Router } from '../../src/http/route.ts';

const routeOf = (path: string): Route => ({
  path,
  methods: ['GET'],
  answer: () => ({ status: 200, headers: [], body: '' }),
});

const router = new Router(['/api/endpoints/query/*', '/api/endpoints', '/'].map(routeOf));

const TARGETS: [text: string, route: string, rest: string, query: string][] = [
  ['/', '/', '', ''],
  ['/?a=1', '/', '', 'a=1'],
  ['/api/endpoints', '/api/endpoints', '', ''],
  ['/api/endpoints/query/logs.all', '/api/endpoints/query/*', 'logs.all', ''],
  ['/api/endpoints/query/logs.all?', '/api/endpoints/query/*', 'logs.all', ''],
  ['/api/endpoints/query/logs.all?a=1?b=/2', '/api/endpoints/query/*', 'logs.all', 'a=1?b=/2'],
  ['/api/endpoints/query/logs%2Eall?a=%41', '/api/endpoints/query/*', 'logs.all', 'a=%41'],
  ['/api/endpoints/query/a%2Fb', '/api/endpoints/query/*', 'a/b', ''],
  ['/api/endpoints/query/%ff', '/api/endpoints/query/*', '%ff', ''],
  ['http://host:1/api/endpoints?a=1', '/api/endpoints', '', 'a=1'],
  [
    `/api/endpoints/query/logs.all?a=${'x'.repeat(5000)}`,
    '/api/endpoints/query/*',
    'logs.all',
    `a=${'x'.repeat(5000)}`,
  ],
];

describe('a router', () => {
  test.each(TARGETS)('leads %s to %s, the first time and the next', (text, path, rest, query) => {
    for (let time = 1; time <= 3; time++)
      expect(router.find(text)).toMatchObject({ route: { path }, rest, query, text });
  });

  test.each(['', '/api', '/api/endpoints/', '/api/endpoints/query/', '/api/endpoints/query/a/b', '*'])(
    'finds nothing at %j, however often it is asked',
    text => {
      for (let time = 1; time <= 3; time++) expect(() => router.find(text)).toThrow(DendroError);
    },
  );

  test('finds each of more targets than it keeps', () => {
    for (let round = 1; round <= 2; round++)
      for (let n = 0; n < 5_000; n++)
        expect(router.find(`/api/endpoints/query/name${n}?n=${n}`)).toMatchObject({
          rest: `name${n}`,
          query: `n=${n}`,
        });
  });
});
