// The internal listener's routes, for machines of the platform.

import { healthRoute, type PublicParts } from './public.ts';
import type { Route } from './route.ts';

export function internalRoutes(parts: PublicParts): Route[] {
  return [healthRoute(parts)];
}
