// The parameter `interval` of an endpoint that returns one row per time bucket, as the catalog defines it.
import { type Choice, type Endpoint, readChoices } from '../api/catalog.ts';

export interface Interval {
  readonly name: string;
  readonly windowSeconds: number;
  readonly bucketSeconds: number;
  readonly refreshSeconds: number;
}

export interface Intervals {
  readonly all: readonly Interval[];
  readonly default: Interval;
  /** The interval with this name, or the default. */
  find(name: string | undefined): Interval;
}

export function readIntervals(endpoint: Endpoint): Intervals {
  const choices = readChoices(endpoint, 'interval');
  const all = choices.all.map(toInterval);
  const defaultInterval = toInterval(choices.default);
  return {
    all,
    default: defaultInterval,
    find: requested => all.find(({ name }) => name === requested) ?? defaultInterval,
  };
}

function toInterval({ name, values }: Choice): Interval {
  const windowSeconds = Number(values['window_seconds']);
  // Short windows change faster: refresh every 10 s for 5 minutes, 1 min for an hour, 5 min for a day or more.
  const maxRefreshSeconds = windowSeconds <= 3600 ? 60 : 300;
  const refreshSeconds = Math.min(Math.max(windowSeconds / 30, 10), maxRefreshSeconds);
  return { name, windowSeconds, bucketSeconds: Number(values['bucket_seconds']), refreshSeconds };
}
