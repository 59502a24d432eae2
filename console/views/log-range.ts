// Which time range of the log is asked for: one that moves with now, or two moments.

export interface Range {
  readonly value: string;
  readonly label: string;
  readonly title: string;
  /** How far back from now; undefined: no bound of its own. */
  readonly seconds: number | undefined;
}

export const CUSTOM = 'custom';

export const RANGES: readonly Range[] = [
  { value: '15min', label: '15 min', title: 'The last 15 minutes', seconds: 900 },
  { value: '1hr', label: '1 hour', title: 'The last hour', seconds: 3600 },
  { value: '1day', label: '1 day', title: 'The last day', seconds: 86_400 },
  { value: 'all', label: 'All', title: 'All that the tier keeps', seconds: undefined },
  { value: CUSTOM, label: 'Custom', title: 'From one moment to another', seconds: undefined },
];

export interface Bounds {
  readonly iso_timestamp_start: string;
  readonly iso_timestamp_end: string;
}

export function boundsOf(settings: Readonly<Record<string, string>>): Bounds {
  if (settings['range'] === CUSTOM)
    return { iso_timestamp_start: settings['start'] ?? '', iso_timestamp_end: settings['end'] ?? '' };
  const seconds = RANGES.find(({ value }) => value === settings['range'])?.seconds;
  const start = seconds === undefined ? '' : new Date(Date.now() - seconds * 1000).toISOString();
  return { iso_timestamp_start: start, iso_timestamp_end: '' };
}

/** What a datetime-local field shows for a moment; empty for what is none. */
export function toLocalField(iso: string): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return '';
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

export function fromLocalField(value: string): string {
  const ms = Date.parse(value); // without an offset: the visitor's zone
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().replace('.000Z', 'Z');
}
