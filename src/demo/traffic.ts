// The synthetic platform of the demo: four projects, and the records of a period in the JSON format that log shippers send.
// Incidents and trends are relative to the start of the demo, so that the default views of the console show them.
import { type LogLines, toLogLines } from '../domain/log-line.ts';
import { createIdSequence, isRejection, toRecord } from '../logs/record.ts';
import type { Store } from '../store/store.ts';
import type { Random } from './random.ts';

// In seconds.
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

interface Moment {
  /** Unix milliseconds. */
  readonly ms: number;
  /** Seconds before the start of the demo; negative after it. */
  readonly ago: number;
}

interface DemoFunction {
  readonly id: string;
  /** Fraction of the project's invocations, from 0 to 1. */
  readonly share: number;
  medianMs(moment: Moment): number;
  /** Standard deviation of the logarithm of the duration. */
  readonly sigma: number;
}

interface DemoProject {
  readonly ref: string;
  readonly description: string;
  requestsPerSecond(moment: Moment): number;
  invocationsPerSecond(moment: Moment): number;
  /** Fraction of the requests and invocations that fail, from 0 to 1. */
  errorRate(moment: Moment): number;
  readonly functions: readonly [DemoFunction, ...DemoFunction[]];
  /** Service areas; an area listed twice gets twice as many requests. */
  readonly areas: readonly [Area, ...Area[]];
}

/** Paths by service area. */
const PATHS = {
  rest: ['/rest/v1/items', '/rest/v1/orders', '/rest/v1/profiles', '/rest/v1/rpc/totals'],
  auth: ['/auth/v1/token', '/auth/v1/user', '/auth/v1/logout'],
  storage: ['/storage/v1/object/public/images/hero.webp', '/storage/v1/object/sign/files/invoice.pdf'],
  realtime: ['/realtime/v1/websocket'],
} as const;
type Area = keyof typeof PATHS;

/** A factor of the traffic: less at night, more in the afternoon (UTC). */
const dayWave = ({ ms }: Moment) => 1 + 0.6 * Math.sin((((ms / 1000 / HOUR) % 24) - 9) * (Math.PI / 12));
/** A factor of the traffic: it grows from 40 % to 100 % over the seven days before the demo starts, and is 8 times as much since two hours before it. */
const saleGrowth = ({ ago }: Moment) =>
  (1 - 0.6 * Math.min(1, Math.max(0, ago / (7 * DAY)))) * (ago < 2 * HOUR ? 8 : 1);
const isDown = ({ ago }: Moment) => ago > 18 * MINUTE && ago < 34 * MINUTE;
/** A median that has been growing since a deployment 36 hours before the demo. */
const growingMedianMs = ({ ago }: Moment) =>
  110 * (1 + 7 * Math.min(1, Math.max(0, (1.5 * DAY - ago) / (1.5 * DAY))));
const steady = (id: string, share: number, medianMs: number, sigma: number): DemoFunction => ({
  ...{ id, share, sigma, medianMs: () => medianMs },
});

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
    description: 'its database was down for 16 minutes, until 18 minutes before the demo started',
    requestsPerSecond: moment => 0.04 * dayWave(moment) * (isDown(moment) ? 6 : 1), // clients retry
    invocationsPerSecond: moment => 0.04 * dayWave(moment) * (isDown(moment) ? 5 : 1),
    errorRate: moment => (isDown(moment) ? 0.72 : 0.006),
    functions: [
      { id: 'berths', share: 0.7, sigma: 0.4, medianMs: moment => (isDown(moment) ? 2600 : 70) },
      { id: 'tides', share: 0.3, sigma: 0.4, medianMs: moment => (isDown(moment) ? 1900 : 55) },
    ],
    areas: ['rest', 'rest', 'rest', 'auth', 'realtime', 'realtime'],
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

/** All times are Unix milliseconds. */
export interface Period {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  /** The start of the demo. */
  readonly demoStartMs: number;
  /** 1 is the normal amount of traffic. */
  readonly scale: number;
}

export const DEMO_KINDS = ['edge', 'function_edge'] as const;
export type DemoRecords = Record<(typeof DEMO_KINDS)[number], object[]>;

/** The period should be much shorter than an hour, because the rates at its middle apply to all of it. */
export function createTraffic({ fromMs, toMs, demoStartMs, scale }: Period, random: Random): DemoRecords {
  const momentAt = (ms: number): Moment => ({ ms, ago: (demoStartMs - ms) / 1000 });
  const middle = momentAt((fromMs + toMs) / 2);
  const scaledSeconds = ((toMs - fromMs) / 1000) * scale;
  const createMany = (perSecond: number, create: (moment: Moment) => object) =>
    Array.from({ length: random.poisson(perSecond * scaledSeconds) }, () =>
      create(momentAt(Math.floor(fromMs + random.next() * (toMs - fromMs)))),
    );
  return {
    edge: DEMO_PROJECTS.flatMap(project =>
      createMany(project.requestsPerSecond(middle), moment => createRequest(project, moment, random)),
    ),
    function_edge: DEMO_PROJECTS.flatMap(project =>
      createMany(project.invocationsPerSecond(middle), moment => createInvocation(project, moment, random)),
    ),
  };
}

const AGENTS = ['Mozilla/5.0 (X11; Linux x86_64)', 'Mozilla/5.0 (iPhone)', 'okhttp/4.12.0', 'node'] as const;
const COUNTRIES = ['DE', 'US', 'BR', 'JP', 'IN', 'FR', 'KE'] as const;
const ERRORS = [500, 503, 504, 503, 401, 404, 429] as const;

function createRequest({ ref, areas, errorRate }: DemoProject, moment: Moment, random: Random): object {
  const area = random.pick(areas);
  const path = random.pick(PATHS[area]);
  const method = area === 'auth' || random.chance(0.2) ? 'POST' : 'GET';
  const success = area === 'realtime' ? 101 : area === 'rest' && method === 'POST' ? 201 : 200;
  const status = random.chance(errorRate(moment)) ? random.pick(ERRORS) : success;
  const host = `${ref}.example.com`;
  // An address of a range that is reserved for documentation (RFC 5737).
  const address = `${random.pick(['192.0.2', '198.51.100', '203.0.113'])}.${Math.floor(random.next() * 254) + 1}`;
  return {
    timestamp: new Date(moment.ms).toISOString(),
    project: ref,
    event_message: `${method} ${status} ${path}`,
    metadata: {
      request: {
        ...{ method, host, path, url: `https://${host}${path}` },
        headers: { user_agent: random.pick(AGENTS), x_forwarded_for: address },
        cf: { country: random.pick(COUNTRIES), tls_version: 'TLSv1.3' },
      },
      response: { status_code: status, origin_time: random.duration(24, 0.7) },
    },
  };
}

function createInvocation(
  { ref, functions, errorRate }: DemoProject,
  moment: Moment,
  random: Random,
): object {
  let remaining = random.next();
  const { id, medianMs, sigma } =
    functions.find(candidate => {
      remaining -= candidate.share;
      return remaining < 0;
    }) ?? functions[0];
  const status = random.chance(errorRate(moment)) ? random.pick(ERRORS) : 200;
  const path = `/functions/v1/${id}`;
  return {
    timestamp: new Date(moment.ms).toISOString(),
    event_message: `POST ${status} ${path}`,
    metadata: {
      ...{ project_ref: ref, function_id: id, execution_time_ms: random.duration(medianMs(moment), sigma) },
      request: { method: 'POST', pathname: path },
      response: { status_code: status },
    },
  };
}

/** Seven days, and one more, because the first bucket of a 7-day window starts up to a day before the window. */
const HISTORY_DAYS = 8;
const PERIOD_MS = 60_000;
const PERIODS_PER_BATCH = 240;

/** Appends the records of the last days to the store, checked by the rules of the intake. Returns their number. */
export async function fillHistory(
  store: Store,
  { endMs, scale, random }: { readonly endMs: number; readonly scale: number; readonly random: Random },
): Promise<number> {
  const nowMicros = endMs * 1000;
  const context = { nowMicros, retentionDays: HISTORY_DAYS + 1, createId: createIdSequence(nowMicros) };
  let count = 0;
  async function* createBatches(): AsyncGenerator<LogLines> {
    const step = PERIODS_PER_BATCH * PERIOD_MS;
    for (let batchMs = endMs - HISTORY_DAYS * DAY * 1000; batchMs < endMs; batchMs += step) {
      const records: DemoRecords = { edge: [], function_edge: [] };
      for (let fromMs = batchMs; fromMs < Math.min(batchMs + step, endMs); fromMs += PERIOD_MS) {
        const period = { fromMs, toMs: Math.min(fromMs + PERIOD_MS, endMs), demoStartMs: endMs, scale };
        const created = createTraffic(period, random);
        for (const kind of DEMO_KINDS) records[kind].push(...created[kind]);
      }
      for (const kind of DEMO_KINDS) {
        const accepted = records[kind].flatMap(record => {
          const result = toRecord(record, kind, context);
          return isRejection(result) ? [] : [result];
        });
        count += accepted.length;
        yield toLogLines(kind, accepted);
      }
    }
  }
  await store.append(createBatches());
  return count;
}
