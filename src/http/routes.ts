// The routes of both listeners. Those of the public listener change no data. The internal listener is for the platform's own machines.
import { allows } from '../token/token.ts';
import { ALERTS_PATH, getAdminAlerts, getAlerts, postSendTest, postSilence, postTest } from './alerts.ts';
import { authenticate } from './authenticate.ts';
import { BACKUP_PATH, getBackup, postBackup } from './backup.ts';
import { findCacheHit } from './cache-hit.ts';
import { consoleRoutes } from './console-files.ts';
import { getErase, postErase } from './erase.ts';
import { missingScopeError } from './error-response.ts';
import { otlpErrorResponse } from './otlp-response.ts';
import { postLogs } from './post-logs.ts';
import { postOtlpLogs } from './post-otlp-logs.ts';
import { handleCatalog, handleExplain, handleOpenApi, handleQuery } from './query.ts';
import { type HttpResponse, jsonResponse, toHeaderList } from './response.ts';
import type { HttpRequest, Route } from './router.ts';
import { type RouteDependencies, requireServing, type ServingDependencies } from './serving.ts';

const READ_METHODS = ['GET', 'HEAD'];
const QUERY_PATH = '/api/endpoints/query/*';

export function publicRoutes(dependencies: RouteDependencies): Route[] {
  const read = (
    path: string,
    handle: (dependencies: RouteDependencies, request: HttpRequest) => Promise<HttpResponse>,
  ): Route => ({ path, methods: READ_METHODS, handle: request => handle(dependencies, request) });
  return [
    {
      ...read(QUERY_PATH, handleQuery),
      methods: [...READ_METHODS, 'POST'],
      cacheHit: (rawRequest, startedAt) => {
        const serving = dependencies.serving();
        return serving && findCacheHit(serving, rawRequest, startedAt);
      },
    },
    read('/api/endpoints/explain/*', handleExplain),
    read('/api/endpoints', handleCatalog),
    read('/openapi.json', handleOpenApi),
    read('/api/alerts', (_, request) => getAlerts(requireServing(dependencies), request)),
    ...healthRoutes(dependencies),
    ...consoleRoutes(),
  ];
}

export function internalRoutes(dependencies: RouteDependencies): Route[] {
  type Handle = (serving: ServingDependencies, request: HttpRequest) => Promise<HttpResponse>;
  const serve = (path: string, handlers: Readonly<Record<string, Handle>>): Route => ({
    path,
    methods: Object.keys(handlers),
    handle: async request => {
      const handle = handlers[request.raw.method ?? ''] as Handle; // other methods were refused
      return handle(requireServing(dependencies), request);
    },
  });
  return [
    serve('/api/logs', { POST: postLogs }),
    { ...serve('/v1/logs', { POST: postOtlpLogs }), errorResponse: otlpErrorResponse },
    serve('/api/admin/erase', { GET: getErase, POST: postErase }),
    serve(ALERTS_PATH, { GET: getAdminAlerts }),
    serve(`${ALERTS_PATH}/silence`, { POST: postSilence }),
    serve(`${ALERTS_PATH}/test`, { POST: postTest }),
    serve(`${ALERTS_PATH}/send-test`, { POST: postSendTest }),
    serve(BACKUP_PATH, { GET: getBackup, POST: postBackup }),
    { path: '/metrics', methods: READ_METHODS, handle: request => handleMetrics(dependencies, request) },
    ...healthRoutes(dependencies),
  ];
}

/**
 * `/health` and `/health/ready`: whether queries are served. `/health/live`: whether the process can still recover by itself. It
 * is 200 while a remote store is unreachable, because a restart would not help. All have the same body.
 */
function healthRoutes({ state, isRecoverable, version, storeName: store }: RouteDependencies): Route[] {
  const health = (path: string, isHealthy: () => boolean): Route => ({
    path,
    methods: READ_METHODS,
    handle: async () =>
      jsonResponse(
        isHealthy() ? 200 : 503,
        { status: state(), version, store },
        { 'Cache-Control': 'no-store' },
      ),
  });
  const isReady = () => state() === 'ok';
  return [
    health('/health', isReady),
    health('/health/ready', isReady),
    health('/health/live', isRecoverable),
  ];
}

async function handleMetrics(dependencies: RouteDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  if (!dependencies.metricsOpen) {
    const token = authenticate(requireServing(dependencies), raw);
    if (!allows(token, 'metrics')) throw missingScopeError(token, 'metrics');
  }
  const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
  return { status: 200, headers: toHeaderList(headers), body: await dependencies.renderMetrics() };
}
