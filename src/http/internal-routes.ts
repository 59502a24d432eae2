// The routes of the internal listener, for the platform's own machines: log intake, administration, metrics, health.
import { allows } from '../token/token.ts';
import { authenticate } from './authenticate.ts';
import { BACKUP_PATH, getBackup, postBackup } from './backup.ts';
import { getErase, postErase } from './erase.ts';
import { missingScopeError } from './error-response.ts';
import { healthRoutes } from './health-routes.ts';
import { otlpErrorResponse } from './otlp-response.ts';
import { postLogs } from './post-logs.ts';
import { postOtlpLogs } from './post-otlp-logs.ts';
import { type HttpResponse, toHeaderList } from './response.ts';
import { type RouteDependencies, requireServing } from './route-dependencies.ts';
import type { HttpRequest, Route } from './router.ts';

export interface InternalDependencies extends RouteDependencies {
  /** Whether /metrics is served without a token. */
  readonly metricsOpen: boolean;
  /** Returns the Prometheus text format. */
  readonly renderMetrics: () => Promise<string>;
}

export function internalRoutes(dependencies: InternalDependencies): Route[] {
  return [
    {
      path: '/api/logs',
      methods: ['POST'],
      handle: request => postLogs(requireServing(dependencies), request),
    },
    {
      path: '/v1/logs',
      methods: ['POST'],
      handle: request => postOtlpLogs(requireServing(dependencies), request),
      errorResponse: otlpErrorResponse,
    },
    {
      path: '/api/admin/erase',
      methods: ['GET', 'POST'],
      handle: request => {
        const handle = request.raw.method === 'POST' ? postErase : getErase;
        return handle(requireServing(dependencies), request);
      },
    },
    {
      path: '/metrics',
      methods: ['GET', 'HEAD'],
      handle: request => handleMetrics(dependencies, request),
    },
    {
      path: BACKUP_PATH,
      methods: ['GET', 'POST'],
      handle: request => {
        const handle = request.raw.method === 'POST' ? postBackup : getBackup;
        return handle(requireServing(dependencies), request);
      },
    },
    ...healthRoutes(dependencies),
  ];
}

async function handleMetrics(
  dependencies: InternalDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
  if (!dependencies.metricsOpen) {
    const token = authenticate(requireServing(dependencies), raw);
    if (!allows(token, 'metrics')) throw missingScopeError(token);
  }
  const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
  return { status: 200, headers: toHeaderList(headers), body: await dependencies.renderMetrics() };
}
