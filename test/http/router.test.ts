import { describe, expect, test } from 'vitest';
import { DendroError } from '../../src/domain/errors.ts';
import { type Route, Router } from '../../src/http/router.ts';

const routeOf = (path: string): Route => ({
  path,
  methods: ['GET'],
  handle: () => ({ status: 200, headers: [], body: '' }),
});

const router = new Router(['/api/endpoints/query/*', '/api/endpoints', '/'].map(routeOf));

const TARGETS: [target: string, route: string, pathParameter: string, queryString: string][] = [
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

describe('the router', () => {
  test.each(TARGETS)(
    'finds for %s the route %s, the first time and memoized',
    (target, path, pathParameter, queryString) => {
      for (let time = 1; time <= 3; time++)
        expect(router.find(target)).toMatchObject({ route: { path }, pathParameter, queryString, target });
    },
  );

  test.each(['', '/api', '/api/endpoints/', '/api/endpoints/query/', '/api/endpoints/query/a/b', '*'])(
    'throws not_found for %j, every time',
    target => {
      for (let time = 1; time <= 3; time++) expect(() => router.find(target)).toThrow(DendroError);
    },
  );

  test('finds every one of more targets than it memoizes', () => {
    for (let round = 1; round <= 2; round++)
      for (let n = 0; n < 5_000; n++)
        expect(router.find(`/api/endpoints/query/name${n}?n=${n}`)).toMatchObject({
          pathParameter: `name${n}`,
          queryString: `n=${n}`,
        });
  });
});
