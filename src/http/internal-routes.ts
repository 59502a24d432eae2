// The internal listener's routes, for machines of the platform: logs in, metrics, health.
import { allows } from '../token/token.ts';
import { authenticate } from './authenticate.ts';
import { missingScopeError } from './error-response.ts';
import { postLogs } from './post-logs.ts';
import { healthRoute, type PublicDependencies, requireService } from './public-routes.ts';
import { type HttpResponse, listHeaders } from './response.ts';
import type { HttpRequest, Route } from './router.ts';

export interface InternalDependencies extends PublicDependencies {
  /** Whether metrics are told without a token. */
  readonly metricsOpen: boolean;
  /** In the text format of Prometheus. */
  readonly renderMetrics: () => string;
}

export function internalRoutes(parts: InternalDependencies): Route[] {
  return [
    { path: '/api/logs', methods: ['POST'], handle: call => postLogs(requireService(parts), call) },
    { path: '/metrics', methods: ['GET', 'HEAD'], handle: call => handleMetrics(parts, call) },
    healthRoute(parts),
  ];
}

/** They tell of all projects, so a token that is pinned to some does not open them. */
async function handleMetrics(parts: InternalDependencies, { request }: HttpRequest): Promise<HttpResponse> {
  if (!parts.metricsOpen) {
    const token = await authenticate(requireService(parts), request);
    if (!allows(token, 'metrics') || token.projects !== undefined) throw missingScopeError();
  }
  const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
  return { status: 200, headers: listHeaders(headers), body: parts.renderMetrics() };
}
