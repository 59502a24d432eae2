// The settings of the logs view for a time range that the user chose in a chart.
import { type Endpoint, readChoices } from '../api/catalog.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import { microsToIso } from '../format.ts';
import type { UrlState } from '../url-state.ts';

type Settings = UrlState['settings'];

/**
 * The settings for the logs view of this endpoint. Keeps the tier of the previous settings if its retention reaches back to the
 * start, and chooses a higher one otherwise.
 */
export function createLogsSettings(
  endpoint: Endpoint,
  previous: Settings,
  { startMicros, endMicros }: TimeRange,
): Settings {
  return {
    range: 'custom',
    // A TimeRange includes its start and excludes its end. The logs endpoints do the opposite, so each bound is 1 µs earlier.
    start: microsToIso(startMicros - 1),
    end: microsToIso(endMicros - 1),
    tier: chooseTier(endpoint, previous['tier'] ?? '', startMicros),
  };
}

/** The current tier if its retention reaches back to the start; otherwise the first tier whose retention does, if any. */
export function chooseTier(endpoint: Endpoint, current: string, startMicros: number): string {
  const { all } = readChoices(endpoint, 'project_tier');
  const neededDays = (Date.now() - startMicros / 1000) / 86_400_000;
  const isLongEnough = ({ values }: (typeof all)[number]) => Number(values['retention_days']) > neededDays;
  const currentTier = all.find(({ name }) => name === current);
  if (currentTier !== undefined && isLongEnough(currentTier)) return current;
  return all.find(isLongEnough)?.name ?? current;
}
