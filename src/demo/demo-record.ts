// Creates single records in the JSON format that log shippers send.
import type { Area, DemoFunction, DemoProject, Moment } from './platform.ts';
import type { Random } from './random.ts';

export interface DemoRecord {
  readonly kind: 'edge' | 'function_edge';
  readonly record: Readonly<Record<string, unknown>>;
}

const PATHS: Readonly<Record<Area, readonly [string, ...string[]]>> = {
  rest: ['/rest/v1/items', '/rest/v1/orders', '/rest/v1/profiles', '/rest/v1/rpc/totals'],
  auth: ['/auth/v1/token', '/auth/v1/user', '/auth/v1/logout'],
  storage: ['/storage/v1/object/public/images/hero.webp', '/storage/v1/object/sign/files/invoice.pdf'],
  realtime: ['/realtime/v1/websocket'],
};
const AGENTS = ['Mozilla/5.0 (X11; Linux x86_64)', 'Mozilla/5.0 (iPhone)', 'okhttp/4.12.0', 'node'] as const;
const COUNTRIES = ['DE', 'US', 'BR', 'JP', 'IN', 'FR', 'KE'] as const;

export function createEdgeRecord(project: DemoProject, moment: Moment, random: Random): DemoRecord {
  const area = random.pick(project.areas);
  const path = random.pick(PATHS[area]);
  const method = area === 'auth' || random.chance(0.2) ? 'POST' : 'GET';
  const status = random.chance(project.errorRate(moment))
    ? errorStatus(random)
    : successStatus(area, method, random);
  const host = `${project.ref}.example.com`;
  return {
    kind: 'edge',
    record: {
      timestamp: new Date(moment.ms).toISOString(),
      project: project.ref,
      event_message: `${method} ${status} ${path}`,
      metadata: {
        request: {
          method,
          host,
          path,
          url: `https://${host}${path}`,
          headers: { user_agent: random.pick(AGENTS), x_forwarded_for: createAddress(random) },
          cf: { country: random.pick(COUNTRIES), tls_version: 'TLSv1.3' },
        },
        response: { status_code: status, origin_time: random.duration(24, 0.7) },
      },
    },
  };
}

export function createFunctionRecord(project: DemoProject, moment: Moment, random: Random): DemoRecord {
  const demoFunction = chooseFunction(project, random);
  const status = random.chance(project.errorRate(moment)) ? errorStatus(random) : 200;
  const path = `/functions/v1/${demoFunction.id}`;
  return {
    kind: 'function_edge',
    record: {
      timestamp: new Date(moment.ms).toISOString(),
      event_message: `POST ${status} ${path}`,
      metadata: {
        project_ref: project.ref,
        function_id: demoFunction.id,
        execution_time_ms: random.duration(demoFunction.medianMs(moment), demoFunction.sigma),
        request: { method: 'POST', pathname: path },
        response: { status_code: status },
      },
    },
  };
}

function chooseFunction({ functions }: DemoProject, random: Random): DemoFunction {
  let remaining = random.next();
  for (const candidate of functions) {
    remaining -= candidate.share;
    if (remaining < 0) return candidate;
  }
  return functions[0]; // reached only if the shares add up to slightly less than 1
}

function successStatus(area: Area, method: string, random: Random): number {
  if (area === 'realtime') return 101;
  if (area === 'storage' && random.chance(0.3)) return 304;
  return area === 'rest' && method === 'POST' ? 201 : 200;
}

function errorStatus(random: Random): number {
  return random.pick([500, 503, 504, 503, 401, 404, 429]);
}

/** An address of the ranges reserved for documentation (RFC 5737). */
function createAddress(random: Random): string {
  return `${random.pick(['192.0.2', '198.51.100', '203.0.113'])}.${Math.floor(random.next() * 254) + 1}`;
}
