// The parameter `interval` of an endpoint that returns one row per time bucket, as the catalog defines it.
import { type Choice, type Endpoint, readChoices } from '../api/catalog.ts';
import type { Action } from '../components/messages.ts';
import { formatPeriod } from '../format.ts';

export interface Interval {
  readonly name: string;
  readonly windowSeconds: number;
  readonly bucketSeconds: number;
  readonly refreshSeconds: number;
}

export interface Intervals {
  readonly all: readonly Interval[];
  readonly default: Interval;
  readonly longest: Interval;
  /** The interval with this name, or the default. */
  find(name: string | undefined): Interval;
  /** The interval with the shortest buckets that reaches back to this time; `selected` if none has shorter buckets than it. */
  findFinest(selected: Interval, startMs: number): Interval;
}

export function readIntervals(endpoint: Endpoint): Intervals {
  const choices = readChoices(endpoint, 'interval');
  const all = choices.all.map(toInterval);
  const defaultInterval = toInterval(choices.default);
  return {
    all,
    default: defaultInterval,
    longest: all.reduce((longest, each) => (each.windowSeconds > longest.windowSeconds ? each : longest)),
    find: requested => all.find(({ name }) => name === requested) ?? defaultInterval,
    findFinest(selected, startMs) {
      const neededSeconds = (Date.now() - startMs) / 1000;
      return all
        .filter(({ windowSeconds }) => windowSeconds >= neededSeconds)
        .reduce((finest, each) => (each.bucketSeconds < finest.bucketSeconds ? each : finest), selected);
    },
  };
}

/** Offers the longest interval if this one is shorter. */
export function createWiderAction(
  { longest }: Intervals,
  { windowSeconds }: Interval,
  choose: (interval: string) => void,
): Action | undefined {
  if (windowSeconds >= longest.windowSeconds) return undefined;
  return {
    label: `Show the last ${formatPeriod(longest.windowSeconds)}`,
    run: () => choose(longest.name),
  };
}

function toInterval({ name, values }: Choice): Interval {
  const windowSeconds = Number(values['window_seconds']);
  // Short windows change faster: refresh every 10 s for 5 minutes, 1 min for an hour, 5 min for a day or more.
  const maxRefreshSeconds = windowSeconds <= 3600 ? 60 : 300;
  const refreshSeconds = Math.min(Math.max(windowSeconds / 30, 10), maxRefreshSeconds);
  return { name, windowSeconds, bucketSeconds: Number(values['bucket_seconds']), refreshSeconds };
}
