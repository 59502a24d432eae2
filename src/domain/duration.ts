// Durations as operators write them: 30s, 15m, 12h, 90d.

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Returns seconds; undefined if the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = UNIT_SECONDS[unit];
  return seconds === undefined ? undefined : Number(count) * seconds;
}
