// Tables for the terminal and for BENCHMARKS.md, and how figures are written in them.
import { median, percentile } from '../tools/statistics.mjs';

/** @import { Comparison, MeasuredRequest, Table } from '../types.ts' */

/** @type {Record<string, string>} */
export const SYSTEM_NAMES = {
  dendro: 'Dendro',
  studio: 'Studio',
  duckdb: 'DuckDB alone',
  clickhouse: 'ClickHouse',
  postgres: 'PostgreSQL',
  'postgres-trgm': 'PostgreSQL with pg_trgm',
};

/** @param {Table} table */
export function formatTable({ title, header, rows }) {
  const lines = [header, ...rows].map(cells => cells.map(String));
  const widths = header.map((_, column) => Math.max(...lines.map(cells => cells[column].length)));
  const alignRight = header.map((_, column) => hasOnlyFigures(rows, column));
  /** @param {string[]} cells */
  const format = cells =>
    cells
      .map((cell, column) =>
        alignRight[column] ? cell.padStart(widths[column]) : cell.padEnd(widths[column]),
      )
      .join('  ')
      .trimEnd();
  const rule = widths.map(width => '-'.repeat(width)).join('  ');
  return `\n${title}\n${[format(lines[0]), rule, ...lines.slice(1).map(format)].join('\n')}\n`;
}

/** @param {Table} table */
export function formatMarkdown({ title, header, rows }) {
  /** @param {(string | number)[]} cells */
  const format = cells => `| ${cells.join(' | ')} |`;
  const rule = header.map((_, column) => (hasOnlyFigures(rows, column) ? '--:' : '---'));
  return [`**${title}**`, '', format(header), format(rule), ...rows.map(format)].join('\n');
}

/** @param {Table['rows']} rows @param {number} column */
function hasOnlyFigures(rows, column) {
  return rows.every(cells => /^(\d[\d.,]*( ?[%×])?|–)?$/.test(String(cells[column])));
}

/**
 * Median and 95th percentile of every system, and the ratio of the other systems' medians to Dendro's.
 * @param {string} title @param {Pick<Comparison, 'cases'>} comparison
 * @returns {Table}
 */
export function comparisonTable(title, { cases }) {
  const systems = Object.keys(SYSTEM_NAMES).filter(name => cases.some(({ ms }) => ms[name] !== undefined));
  const others = systems.filter(name => name !== 'dendro');
  return {
    title,
    header: [
      'request',
      'rows',
      ...systems.flatMap(name => [SYSTEM_NAMES[name], 'p95']),
      ...others.map(name => `${SYSTEM_NAMES[name]} / Dendro`),
    ],
    rows: cases.map(({ label, rowCount, ms }) => [
      label,
      rowCount,
      ...systems.flatMap(name =>
        ms[name] === undefined
          ? ['–', '–']
          : [formatMs(median(ms[name])), formatMs(percentile(ms[name], 0.95))],
      ),
      ...others.map(name => (ms[name] === undefined ? '–' : formatRatio(ratioToDendro(ms, name)))),
    ]),
  };
}

/**
 * The median of a system divided by the median of Dendro. Above 1, Dendro is faster.
 * @param {MeasuredRequest['ms']} ms @param {string} system
 */
export function ratioToDendro(ms, system) {
  return median(ms[system]) / median(ms['dendro']);
}

/**
 * @param {string} title @param {Pick<Comparison, 'diskBytes'> & { perKind: number }} result
 * @returns {Table}
 */
export function diskTable(title, { diskBytes, perKind }) {
  return {
    title,
    header: ['system', 'MB', 'bytes per record', 'Dendro / system'],
    rows: Object.entries(diskBytes).map(([name, bytes]) => [
      SYSTEM_NAMES[name],
      formatCount(bytes / 1e6),
      formatCount(bytes / (2 * perKind)),
      formatRatio(diskBytes['dendro'] / bytes),
    ]),
  };
}

/** @param {number} ms */
export function formatMs(ms) {
  return ms >= 100 ? ms.toFixed(0) : ms.toFixed(ms >= 10 ? 1 : 2);
}

/** @param {number} ratio */
export function formatRatio(ratio) {
  if (ratio < 0.01) return `${ratio.toFixed(4)}×`;
  return `${ratio >= 20 ? ratio.toFixed(0) : ratio.toFixed(ratio >= 10 ? 1 : 2)}×`;
}

/** @param {number} count */
export function formatCount(count) {
  return Math.round(count).toLocaleString('en');
}
