// The settings of the logs view for a time range that the user chose in a chart.
import { type Endpoint, readChoices } from '../api/catalog.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import { microsToIso } from '../format.ts';
import type { UrlState } from '../url-state.ts';

type Settings = UrlState['settings'];

/** Keeps the tier of the previous settings if its retention reaches back to the start, and chooses a higher one otherwise. */
export function createLogsSettings(
  catalog: readonly Endpoint[],
  previous: Settings,
  { startMicros, endMicros }: TimeRange,
): Settings {
  return {
    range: 'custom',
    // The logs endpoints return records after the start and up to the end.
    start: microsToIso(startMicros - 1),
    end: microsToIso(endMicros - 1),
    tier: chooseTier(catalog, previous['tier'] ?? '', startMicros),
  };
}

/** The current tier, or the first one whose retention reaches back to the start. */
export function chooseTier(catalog: readonly Endpoint[], current: string, startMicros: number): string {
  const endpoint = catalog.find(({ name }) => name === 'logs.all');
  if (endpoint === undefined) return current;
  const { all } = readChoices(endpoint, 'project_tier');
  const neededDays = (Date.now() - startMicros / 1000) / 86_400_000;
  const isLongEnough = ({ values }: (typeof all)[number]) => Number(values['retention_days']) > neededDays;
  const currentTier = all.find(({ name }) => name === current);
  if (currentTier !== undefined && isLongEnough(currentTier)) return current;
  return all.find(isLongEnough)?.name ?? current;
}
