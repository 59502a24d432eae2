// The table of a comparison: median and 95th percentile of every system, and how the first stands to the others.
import { median, percentile } from '../tools/statistics.mjs';
import { megabytes, ms, times } from './format.mjs';

export const SYSTEM_NAMES = {
  dendro: 'Dendro',
  duckdb: 'DuckDB by itself',
  clickhouse: 'ClickHouse',
  postgres: 'PostgreSQL',
};

export function comparedTable(title, { cases }) {
  const names = Object.keys(SYSTEM_NAMES).filter(name => cases.some(each => each.ms[name] !== undefined));
  const others = names.slice(1);
  return {
    title,
    header: [
      'call',
      'rows',
      ...names.flatMap(name => [`${SYSTEM_NAMES[name]} ms`, 'p95']),
      ...others.map(name => `${SYSTEM_NAMES[name]} / Dendro`),
    ],
    rows: cases.map(({ label, rowCount, ms: samples }) => [
      label,
      rowCount,
      ...names.flatMap(name =>
        samples[name] === undefined
          ? ['–', '–']
          : [ms(median(samples[name])), ms(percentile(samples[name], 0.95))],
      ),
      ...others.map(name => (samples[name] === undefined ? '–' : times(ratio(samples, name)))),
    ]),
  };
}

/** How many times the median of Dendro another system takes. */
export function ratio(samples, name) {
  return median(samples[name]) / median(samples.dendro);
}

export function diskTable(title, { diskBytes, perKind }) {
  return {
    title,
    header: ['system', 'MB', 'bytes a record', 'of it Dendro takes'],
    rows: Object.entries(diskBytes).map(([name, bytes]) => [
      SYSTEM_NAMES[name],
      megabytes(bytes),
      Math.round(bytes / (2 * perKind)),
      `${Math.round((100 * diskBytes.dendro) / bytes)} %`,
    ]),
  };
}
