import { expect, test } from 'vitest';
import { DendroError } from '../../src/domain/errors.ts';
import { findRoute, type Route } from '../../src/http/router.ts';

const routeOf = (path: string): Route => ({
  path,
  methods: ['GET'],
  handle: async () => ({ status: 200, headers: [], body: '' }),
});

const routes = ['/api/endpoints/query/*', '/api/endpoints', '/'].map(routeOf);

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
];

test.each(TARGETS)('%s leads to the route %s', (target, path, pathParameter, queryString) => {
  expect(findRoute(routes, target)).toMatchObject({ route: { path }, pathParameter, queryString });
});

test('a path that no listener has does not name one', () => {
  for (const path of ['/api/endpoints/logs.all', '/api/endpoints/', '/api/admin/other', '/api/logs/x'])
    expect(() => findRoute(routes, path)).toThrow(/^unknown path/);
  expect(() => findRoute(routes, '/api/admin/backup')).toThrow('a path of the internal listener');
});

test.each(['', '/api', '/api/endpoints/', '/api/endpoints/query/', '/api/endpoints/query/a/b', '*'])(
  '%j is not_found',
  target => expect(() => findRoute(routes, target)).toThrow(DendroError),
);
