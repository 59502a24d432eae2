// The synthetic platform: projects with different traffic, errors and latencies. Incidents and trends are defined relative
// to the start of the demo, so that the default views of the console show them.

// In seconds.
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

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
}

export type Area = 'rest' | 'auth' | 'storage' | 'realtime';

/** A factor of the traffic: less at night, more in the afternoon (UTC). */
function dayWave({ ms }: Moment): number {
  const hour = (ms / 1000 / HOUR) % 24;
  return 1 + 0.6 * Math.sin(((hour - 9) / 24) * 2 * Math.PI);
}

const steady = (id: string, share: number, medianMs: number, sigma: number): DemoFunction => ({
  id,
  share,
  medianMs: () => medianMs,
  sigma,
});

const quiet: DemoProject = {
  ref: 'quiet-garden',
  description: 'a hobby project with very little traffic',
  requestsPerSecond: moment => 0.004 * dayWave(moment),
  invocationsPerSecond: () => 1 / (15 * MINUTE),
  errorRate: () => 0.002,
  functions: [steady('water-plants', 1, 38, 0.3)],
  areas: ['rest', 'rest', 'auth', 'storage'],
};

/** A factor of the traffic: a sale started two hours before the demo. */
const sale = ({ ago }: Moment) => (ago < 2 * HOUR ? 8 : 1);

/** A factor of the traffic: it grows from 40 % to 100 % over the seven days before the demo starts, then stays. */
const growth = ({ ago }: Moment) => 1 - 0.6 * Math.min(1, Math.max(0, ago / (7 * DAY)));

const busy: DemoProject = {
  ref: 'busy-market',
  description: 'a shop during a sale',
  requestsPerSecond: moment => 0.12 * dayWave(moment) * growth(moment) * sale(moment),
  invocationsPerSecond: moment => 0.07 * dayWave(moment) * growth(moment) * sale(moment),
  errorRate: () => 0.012,
  functions: [
    steady('search', 0.6, 45, 0.5),
    steady('checkout', 0.25, 180, 0.45),
    steady('thumbnails', 0.15, 420, 0.6),
  ],
  areas: ['rest', 'rest', 'rest', 'rest', 'auth', 'auth', 'storage', 'storage', 'storage', 'realtime'],
};

const isDown = ({ ago }: Moment) => ago > 18 * MINUTE && ago < 34 * MINUTE;

const stormy: DemoProject = {
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
};

/** A median that has been growing since a deployment 36 hours before the demo. */
const growingMedianMs = ({ ago }: Moment) =>
  110 * (1 + 7 * Math.min(1, Math.max(0, (1.5 * DAY - ago) / (1.5 * DAY))));

const slow: DemoProject = {
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
};

export const DEMO_PROJECTS: readonly DemoProject[] = [busy, stormy, slow, quiet];
