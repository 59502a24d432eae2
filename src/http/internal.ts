// The internal listener's routes, for machines of the platform: logs in, metrics, health.
import { allows } from '../token/token.ts';
import { authenticate } from './authenticate.ts';
import { missingScope } from './error-response.ts';
import { takeLogs } from './logs.ts';
import { healthRoute, type PublicParts, requireService } from './public.ts';
import { listHeaders, type Reply } from './reply.ts';
import type { Call, Route } from './route.ts';

export interface InternalParts extends PublicParts {
  /** Whether metrics are told without a token. */
  readonly metricsOpen: boolean;
  /** In the text format of Prometheus. */
  readonly renderMetrics: () => string;
}

export function internalRoutes(parts: InternalParts): Route[] {
  return [
    { path: '/api/logs', methods: ['POST'], answer: call => takeLogs(requireService(parts), call) },
    { path: '/metrics', methods: ['GET', 'HEAD'], answer: call => answerMetrics(parts, call) },
    healthRoute(parts),
  ];
}

/** They tell of all projects, so a token that is pinned to some does not open them. */
async function answerMetrics(parts: InternalParts, { request }: Call): Promise<Reply> {
  if (!parts.metricsOpen) {
    const token = await authenticate(requireService(parts), request);
    if (!allows(token, 'metrics') || token.projects !== undefined) throw missingScope();
  }
  const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
  return { status: 200, headers: listHeaders(headers), body: parts.renderMetrics() };
}
