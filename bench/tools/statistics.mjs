// The few figures that the tables show.

/** The value below which the given share of the samples lies, by nearest rank. */
export function percentile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Numbers in result files: enough digits to compare, few enough to read. */
export function round(value, digits = 3) {
  return Number(value.toFixed(digits));
}
