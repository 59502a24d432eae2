// Numbers as people read them, with their units.

const whole = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 });
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const three = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });

export const formatCount = (value: number): string => whole.format(value);

/** Short, for axes: 1.2K. */
export const formatCompact = (value: number): string => compact.format(value);

/** For tables: three decimals, the unit stands in the heading. */
export const formatExact = (value: number): string => exact.format(value);

export const formatShare = (value: number): string => percent.format(value);

/** Milliseconds in the unit that keeps them short: 0.4 ms, 120 ms, 1.25 s, 2.1 min. */
export function formatMilliseconds(ms: number): string {
  if (Math.abs(ms) < 1000) return `${three.format(ms)} ms`;
  if (Math.abs(ms) < 60_000) return `${three.format(ms / 1000)} s`;
  return `${three.format(ms / 60_000)} min`;
}
