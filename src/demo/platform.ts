// The synthetic platform: projects of different character. Every figure is a function of how long before the demo's
// start a moment lies, so that what is to be seen lies where it can be seen.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

export interface Moment {
  /** Unix milliseconds. */
  readonly ms: number;
  /** Seconds before the demo's start; negative once it runs. */
  readonly ago: number;
}

export interface DemoFunction {
  readonly id: string;
  /** Its part of the project's invocations. */
  readonly share: number;
  medianMs(moment: Moment): number;
  readonly spread: number;
}

export interface DemoProject {
  readonly ref: string;
  readonly character: string;
  requestsPerSecond(moment: Moment): number;
  invocationsPerSecond(moment: Moment): number;
  errorShare(moment: Moment): number;
  readonly functions: readonly [DemoFunction, ...DemoFunction[]];
  /** Service areas, each as often as it stands here. */
  readonly areas: readonly [Area, ...Area[]];
}

export type Area = 'rest' | 'auth' | 'storage' | 'realtime';

/** Less at night, more in the afternoon, by UTC. */
function dayWave({ ms }: Moment): number {
  const hour = (ms / 1000 / HOUR) % 24;
  return 1 + 0.6 * Math.sin(((hour - 9) / 24) * 2 * Math.PI);
}

const steady = (id: string, share: number, median: number, spread: number): DemoFunction => ({
  id,
  share,
  medianMs: () => median,
  spread,
});

const quiet: DemoProject = {
  ref: 'quiet-garden',
  character: 'a hobby project that hardly anybody visits',
  requestsPerSecond: moment => 0.004 * dayWave(moment),
  invocationsPerSecond: () => 1 / (15 * MINUTE),
  errorShare: () => 0.002,
  functions: [steady('water-plants', 1, 38, 0.3)],
  areas: ['rest', 'rest', 'auth', 'storage'],
};

/** More customers every day, and a sale has been on for two hours. */
const sale = ({ ago }: Moment) => (ago < 2 * HOUR ? 8 : 1);

const growth = ({ ago }: Moment) => 1 - 0.6 * Math.min(1, Math.max(0, ago / (7 * DAY)));

const busy: DemoProject = {
  ref: 'busy-market',
  character: 'a shop in the middle of a sale',
  requestsPerSecond: moment => 0.12 * dayWave(moment) * growth(moment) * sale(moment),
  invocationsPerSecond: moment => 0.07 * dayWave(moment) * growth(moment) * sale(moment),
  errorShare: () => 0.012,
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
  character: 'its database was down for a quarter of an hour, not long ago',
  requestsPerSecond: moment => 0.04 * dayWave(moment) * (isDown(moment) ? 6 : 1), // clients try again
  invocationsPerSecond: moment => 0.04 * dayWave(moment) * (isDown(moment) ? 5 : 1),
  errorShare: moment => (isDown(moment) ? 0.72 : 0.006),
  functions: [
    { id: 'berths', share: 0.7, spread: 0.4, medianMs: moment => (isDown(moment) ? 2600 : 70) },
    { id: 'tides', share: 0.3, spread: 0.4, medianMs: moment => (isDown(moment) ? 1900 : 55) },
  ],
  areas: ['rest', 'rest', 'rest', 'auth', 'realtime', 'realtime'],
};

/** Slower and slower since a deployment a day and a half ago. */
const creeping = ({ ago }: Moment) =>
  110 * (1 + 7 * Math.min(1, Math.max(0, (1.5 * DAY - ago) / (1.5 * DAY))));

const slow: DemoProject = {
  ref: 'slow-river',
  character: 'one of its functions gets slower and slower since it was last deployed',
  requestsPerSecond: moment => 0.02 * dayWave(moment),
  invocationsPerSecond: moment => 0.025 * dayWave(moment),
  errorShare: moment => (creeping(moment) > 700 ? 0.03 : 0.005),
  functions: [
    { id: 'monthly-report', share: 0.6, spread: 0.35, medianMs: creeping },
    steady('level', 0.4, 30, 0.3),
  ],
  areas: ['rest', 'rest', 'storage', 'auth'],
};

export const DEMO_PROJECTS: readonly DemoProject[] = [busy, stormy, slow, quiet];
