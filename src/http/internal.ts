// The internal listener's routes, for machines of the platform.
import type { Route } from './listener.ts';
import { healthRoute, type PublicParts } from './public.ts';

export function internalRoutes(parts: PublicParts): Route[] {
  return [healthRoute(parts)];
}
