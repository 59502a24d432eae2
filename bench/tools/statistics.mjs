// Medians, percentiles and rounding for tables and results files.

/**
 * The value that the given share of the samples does not exceed, by nearest rank.
 * @param {number[]} samples @param {number} share
 */
export function percentile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** @param {number[]} samples */
export function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {number} value */
export function round(value, digits = 3) {
  return Number(value.toFixed(digits));
}
