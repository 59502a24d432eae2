// The four projects of the synthetic platform. Incidents and trends are relative to the start of the demo, so that the default
// views of the console show them.

// In seconds.
const MINUTE = 60;
const HOUR = 3600;
export const DAY = 86_400;

export interface Moment {
  /** Unix milliseconds. */
  readonly ms: number;
  /** Seconds before the start of the demo; negative after it. */
  readonly ago: number;
}

export interface DemoFunction {
  readonly id: string;
  /** Fraction of the project's invocations, from 0 to 1. */
  readonly share: number;
  medianMs(moment: Moment): number;
  /** Standard deviation of the logarithm of the duration. */
  readonly sigma: number;
  /** The path of the REST API that each invocation sends a request to. Undefined: none. */
  readonly calls?: string;
}

/** A migration locks a table. Nearly all requests to the table fail meanwhile, and clients retry them. */
export interface TableLock {
  readonly table: string;
  /** The path of the table in the REST API. */
  readonly path: string;
  readonly migration: string;
  /** In seconds before the start of the demo, like `endAgo`. */
  readonly startAgo: number;
  readonly endAgo: number;
}

export interface DemoProject {
  readonly ref: string;
  readonly description: string;
  requestsPerSecond(moment: Moment): number;
  invocationsPerSecond(moment: Moment): number;
  /** Fraction of the requests and invocations that fail, from 0 to 1. */
  errorRate(moment: Moment): number;
  readonly functions: readonly [DemoFunction, ...DemoFunction[]];
  /** Service areas; an area listed twice gets twice as many requests. */
  readonly areas: readonly [Area, ...Area[]];
  readonly lock?: TableLock;
}

/** Paths by service area. */
export const PATHS = {
  rest: ['/rest/v1/items', '/rest/v1/orders', '/rest/v1/profiles', '/rest/v1/rpc/totals'],
  auth: ['/auth/v1/token', '/auth/v1/user', '/auth/v1/logout'],
  storage: ['/storage/v1/object/public/images/hero.webp', '/storage/v1/object/sign/files/invoice.pdf'],
  realtime: ['/realtime/v1/websocket'],
} as const;
export type Area = keyof typeof PATHS;

/** A factor of the traffic: less at night, more in the afternoon (UTC). */
const dayWave = ({ ms }: Moment) => 1 + 0.6 * Math.sin((((ms / 1000 / HOUR) % 24) - 9) * (Math.PI / 12));
/** A factor of the traffic: it grows from 40 % to 100 % over the seven days before the demo starts, and is 8 times as much since two hours before it. */
const saleGrowth = ({ ago }: Moment) =>
  (1 - 0.6 * Math.min(1, Math.max(0, ago / (7 * DAY)))) * (ago < 2 * HOUR ? 8 : 1);
/** A median that has been growing since a deployment 36 hours before the demo. */
const growingMedianMs = ({ ago }: Moment) =>
  110 * (1 + 7 * Math.min(1, Math.max(0, (1.5 * DAY - ago) / (1.5 * DAY))));
const steady = (id: string, share: number, medianMs: number, sigma: number): DemoFunction => ({
  ...{ id, share, sigma, medianMs: () => medianMs },
});

const ORDERS_LOCK: TableLock = {
  table: 'orders',
  path: '/rest/v1/orders',
  migration: 'alter table public.orders add column berth_code text not null default new_berth_code()',
  startAgo: 34 * MINUTE,
  endAgo: 18 * MINUTE,
};
export const isHeld = ({ startAgo, endAgo }: TableLock, { ago }: Moment) => ago < startAgo && ago > endAgo;

export const DEMO_PROJECTS: readonly DemoProject[] = [
  {
    ref: 'busy-market',
    description: 'a shop during a sale',
    requestsPerSecond: moment => 0.12 * dayWave(moment) * saleGrowth(moment),
    invocationsPerSecond: moment => 0.07 * dayWave(moment) * saleGrowth(moment),
    errorRate: () => 0.012,
    functions: [
      steady('search', 0.6, 45, 0.5),
      steady('checkout', 0.25, 180, 0.45),
      steady('thumbnails', 0.15, 420, 0.6),
    ],
    areas: ['rest', 'rest', 'rest', 'rest', 'auth', 'auth', 'storage', 'storage', 'storage', 'realtime'],
  },
  {
    ref: 'stormy-harbor',
    description: 'it could not take orders for 16 minutes, until 18 minutes before the demo started',
    requestsPerSecond: moment => 0.04 * dayWave(moment),
    invocationsPerSecond: moment => 0.04 * dayWave(moment),
    errorRate: () => 0.006,
    functions: [
      { ...steady('book-berth', 0.2, 45, 0.4), calls: ORDERS_LOCK.path },
      steady('tides', 0.5, 55, 0.4),
      steady('weather', 0.3, 80, 0.4),
    ],
    areas: ['rest', 'rest', 'rest', 'auth', 'storage', 'realtime', 'realtime'],
    lock: ORDERS_LOCK,
  },
  {
    ref: 'slow-river',
    description: 'one of its functions has become slower since its last deployment',
    requestsPerSecond: moment => 0.02 * dayWave(moment),
    invocationsPerSecond: moment => 0.025 * dayWave(moment),
    errorRate: moment => (growingMedianMs(moment) > 700 ? 0.03 : 0.005),
    functions: [
      { id: 'monthly-report', share: 0.6, sigma: 0.35, medianMs: growingMedianMs },
      steady('level', 0.4, 30, 0.3),
    ],
    areas: ['rest', 'rest', 'storage', 'auth'],
  },
  {
    ref: 'quiet-garden',
    description: 'a hobby project with very little traffic',
    requestsPerSecond: moment => 0.004 * dayWave(moment),
    invocationsPerSecond: () => 1 / (15 * MINUTE),
    errorRate: () => 0.002,
    functions: [steady('water-plants', 1, 38, 0.3)],
    areas: ['rest', 'rest', 'auth', 'storage'],
  },
];
