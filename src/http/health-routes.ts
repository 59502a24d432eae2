// The routes for health checks, which both listeners serve without a token.
import { jsonResponse } from './response.ts';
import type { RouteDependencies } from './route-dependencies.ts';
import type { Route } from './router.ts';

const READ_METHODS = ['GET', 'HEAD'];

/**
 * `/health` and `/health/ready`: whether queries are served. `/health/live`: whether the process can still recover by itself. It
 * is 200 while a remote store is unreachable, because a restart would not help. All have the same body.
 */
export function healthRoutes({ state, isRecoverable, version, storeName }: RouteDependencies): Route[] {
  const respond = (isHealthy: boolean) =>
    jsonResponse(
      isHealthy ? 200 : 503,
      { status: state(), version, store: storeName },
      { 'Cache-Control': 'no-store' },
    );
  const isReady = () => state() === 'ok';
  return [
    { path: '/health', methods: READ_METHODS, handle: () => respond(isReady()) },
    { path: '/health/ready', methods: READ_METHODS, handle: () => respond(isReady()) },
    { path: '/health/live', methods: READ_METHODS, handle: () => respond(isRecoverable()) },
  ];
}
