// Regression guard: thresholds for the figures of a run. `npm run bench` exits with 1 when a figure is beyond its threshold.
//
// A baseline is the figure of one run, most of them of bench/results/2026-11-15-6253c8c.json (2 cores, Neoverse-N1; later runs
// replace this file, so it is in the Git history only). A threshold is the baseline with a margin for noise. The comment before a
// check gives the range of its figure in the last four full runs on that machine (commits 2938bd7, c16f57f, b55222f and 6253c8c),
// without runs before a change of the measured code, or names another run, such as e675cab9 on 2 cores of an Intel Xeon (x64).
// Figures are ratios within one run wherever possible, because a ratio depends little on the machine. Absolute figures (memory,
// start time, records per second) have a larger margin. After a change that improves a figure, update its baseline and threshold.
import { formatCount, ratioToDendro } from './report/tables.mjs';
import { growthRatio } from './suites/growth.mjs';
import { shareOfBare } from './suites/http-layer.mjs';
import { countErrors } from './suites/service.mjs';
import { median, percentile } from './tools/statistics.mjs';

/** @import { Comparison, SuiteResults, Table } from './types.ts' */

/** @typedef {{ atLeast: number } | { atMost: number }} Threshold */

/**
 * `read` returns a number that is not finite when the run did not measure the figure.
 * @typedef {{
 *   suite: keyof SuiteResults, figure: string, baseline: number, threshold: Threshold, read: (result: any) => number
 * }} Check
 */

/**
 * @typedef {{
 *   figure: string, baseline: number, threshold: Threshold, value: number | undefined, verdict: Verdict
 * }} CheckResult
 */
/** @typedef {'passed' | 'failed' | 'not measured'} Verdict */

/**
 * @template {keyof SuiteResults} Name
 * @param {Name} suite @param {string} figure @param {number} baseline @param {Threshold} threshold
 * @param {(result: SuiteResults[Name]) => number} read
 * @returns {Check}
 */
function check(suite, figure, baseline, threshold, read) {
  return { suite, figure, baseline, threshold, read };
}

/** @type {Check[]} */
const CHECKS = [
  // 1.66 to 1.74
  check('peers', 'ClickHouse / Dendro, time, median of all requests', 1.74, { atLeast: 1.45 }, result =>
    median(ratios(result, 'clickhouse')),
  ),
  // 0.92 to 1.02: one request is noisier than the median of all
  check('peers', 'ClickHouse / Dendro, time, worst request', 1.02, { atLeast: 0.85 }, result =>
    Math.min(...ratios(result, 'clickhouse')),
  ),
  // 1.20 to 1.27
  check('peers', 'Dendro / DuckDB alone, time, median of all requests', 1.2, { atMost: 1.4 }, result =>
    median(ratios(result, 'duckdb').map(ratio => 1 / ratio)),
  ),
  // 1.49 to 1.65
  check('peers', 'Dendro / DuckDB alone, time, worst request', 1.49, { atMost: 1.8 }, result =>
    Math.max(...ratios(result, 'duckdb').map(ratio => 1 / ratio)),
  ),
  // 1.17 in one run (commit c1938e1); 1.09 to 1.11 before parts had a text filter. Disk usage does not depend on the load of the
  // machine, but on when compaction ran.
  check(
    'peers',
    'Dendro / ClickHouse, disk usage',
    1.17,
    { atMost: 1.23 },
    ({ diskBytes }) => diskBytes['dendro'] / diskBytes['clickhouse'],
  ),
  // 8.76 in one run (e675cab9, Xeon); 13.1 to 13.6 on Neoverse-N1
  check('postgres', 'PostgreSQL / Dendro, time, median of all requests', 8.76, { atLeast: 7 }, result =>
    median(ratios(result, 'postgres')),
  ),
  // 0.21 to 0.33: both times are a few milliseconds
  check('postgres', 'PostgreSQL / Dendro, time, worst request', 0.28, { atLeast: 0.19 }, result =>
    Math.min(...ratios(result, 'postgres')),
  ),
  // 0.114 in three runs
  check(
    'postgres',
    'Dendro / PostgreSQL, disk usage',
    0.114,
    { atMost: 0.125 },
    ({ diskBytes }) => diskBytes['dendro'] / diskBytes['postgres'],
  ),
  // The searches were measured in one run, at commit c1938e1 on the same machine.
  check('search', 'ClickHouse / Dendro, time, median of all searches', 17.3, { atLeast: 11 }, ({ large }) =>
    large === undefined ? Number.NaN : median(ratios(large, 'clickhouse')),
  ),
  check('search', 'a word that occurs nowhere / two words, time', 0.1, { atMost: 0.2 }, ({ large }) =>
    searchRatio(large, 'none word, largest, 90 days', 'two words, largest, 90 days'),
  ),
  check('search', 'all log kinds / edge, rare word, 7 days, time', 2.11, { atMost: 3 }, ({ alone }) =>
    searchRatio(alone, 'rare word, kind all, 7 days', 'rare word, kind edge, 7 days'),
  ),
  // 2.77 in one run (commit 398c4faf): a count of one path, which Studio compares with its query string and a search without
  check('studio', 'Studio / the same search, time, worst request', 2.77, { atMost: 3.2 }, result =>
    Math.max(...ratios(result, 'studio')),
  ),
  // 1.17 to 1.22
  check(
    'growth',
    'largest / smallest data set, time, median of all requests',
    1.19,
    { atMost: 1.35 },
    result => median(result.cases.map(({ ms }) => growthRatio(ms))),
  ),
  // 1.30 to 1.38
  check('growth', 'largest / smallest data set, time, worst request', 1.3, { atMost: 1.55 }, result =>
    Math.max(...result.cases.map(({ ms }) => growthRatio(ms))),
  ),
  // 64 to 66
  check(
    'service',
    '50 clients / one client, p50',
    65.7,
    { atMost: 80 },
    ({ one, many }) => many.p50 / one.p50,
  ),
  // 103 to 134: the slowest hundredth of the requests of 15 s
  check(
    'service',
    '50 clients, p99 / one client, p50',
    119,
    { atMost: 165 },
    ({ one, many }) => many.p99 / one.p50,
  ),
  // No request may fail, so there is no margin.
  check('service', 'failed requests', 0, { atMost: 0 }, ({ one, many, withIntake }) =>
    [one, many, withIntake].reduce((sum, { errors }) => sum + countErrors(errors), 0),
  ),
  // Absolute. 101 to 109
  check('service', 'resident memory, idle, MiB', 101, { atMost: 150 }, ({ residentMb }) => residentMb.idle),
  // Absolute. 295 to 306
  check(
    'service',
    'peak resident memory, 50 clients, MiB',
    295,
    { atMost: 400 },
    ({ residentMb }) => residentMb.queries,
  ),
  // Absolute. 649 to 657
  check(
    'service',
    'peak resident memory, with intake, MiB',
    649,
    { atMost: 850 },
    ({ residentMb }) => residentMb.intake,
  ),
  // Absolute. 533 to 669
  check('service', 'start to first complete result, ms', 533, { atMost: 1000 }, ({ startMs }) =>
    median(startMs),
  ),
  // 0.051 in one run (commit 398c4faf)
  check(
    'alerts',
    '200 alerts every minute, share of the time of one query slot',
    0.051,
    { atMost: 0.1 },
    ({ withAlerts }) => Math.max(...withAlerts.storeShare),
  ),
  check('alerts', 'missed evaluations', 0, { atMost: 0 }, ({ withAlerts }) => withAlerts.missed),
  // The speed of two processes of one program differs by up to a sixth.
  check(
    'http-layer',
    'cache hit / bare node:http, requests per second',
    0.82,
    { atLeast: 0.72 },
    ({ servers: [bare, hit] }) => shareOfBare([bare], hit),
  ),
  // Absolute. 43,800 to 46,700; on Xeons 27,385 to 35,577, so the slowest of them fail
  check(
    'intake',
    'intake over HTTP, records per second',
    45_800,
    { atLeast: 30_000 },
    ({ http }) => http.recordsPerSecond,
  ),
  // 0.66 in one run (commit c1938e1)
  check(
    'intake',
    'intake over OTLP / as NDJSON, records per second',
    0.66,
    { atLeast: 0.5 },
    ({ http, otlp }) => otlp.recordsPerSecond / http.recordsPerSecond,
  ),
  // 0.376 in one run (e675cab9, Xeon), and 0.426 to 0.527 there for earlier code; 0.594 to 0.597 on Neoverse-N1
  check(
    'intake',
    'dendro ingest / read_json, records per second',
    0.376,
    { atLeast: 0.3 },
    ({ file }) => file.ratio,
  ),
  // 1.83 to 2.13
  check(
    'intake',
    'logs.all p95, with intake / without',
    2.13,
    { atMost: 3 },
    ({ logsAll }) => logsAll.ratioP95,
  ),
  // Absolute. 594 to 623
  check(
    'intake',
    'peak resident memory at the maximum rate, MiB',
    594,
    { atMost: 800 },
    result => result.residentMb,
  ),
  // 1.51 to 1.72: the slowest twentieth of times below a millisecond
  check('warming', 'cache hit p95, with warmer / without', 1.51, { atMost: 2.2 }, result =>
    p95Ratio(result, 'hitMs'),
  ),
  // 1.25 to 1.37
  check('warming', 'logs.all p95, with warmer / without', 1.33, { atMost: 1.8 }, result =>
    p95Ratio(result, 'queryMs'),
  ),
];

/**
 * Compares the figures of a run with the thresholds. A suite that did not run, was skipped, or failed is not measured.
 * @param {Partial<Record<keyof SuiteResults, object>>} suites
 * @returns {CheckResult[]}
 */
export function checkThresholds(suites) {
  return CHECKS.map(({ suite, figure, baseline, threshold, read }) => {
    const result = suites[suite];
    const value = result === undefined || !isMeasured(result) ? Number.NaN : read(result);
    if (!Number.isFinite(value))
      return { figure, baseline, threshold, value: undefined, verdict: 'not measured' };
    const isPassed = 'atLeast' in threshold ? value >= threshold.atLeast : value <= threshold.atMost;
    return { figure, baseline, threshold, value, verdict: isPassed ? 'passed' : 'failed' };
  });
}

/** Whether the result of a suite holds figures. @param {object} result */
export function isMeasured(result) {
  return !('failed' in result) && !('skipped' in result);
}

/**
 * @param {CheckResult[]} results
 * @returns {Table}
 */
export function guardTable(results) {
  return {
    title: 'Regression guard',
    header: ['figure', 'baseline', 'threshold', 'this run', 'verdict'],
    rows: results.map(({ figure, baseline, threshold, value, verdict }) => [
      figure,
      formatFigure(baseline),
      'atLeast' in threshold
        ? `at least ${formatFigure(threshold.atLeast)}`
        : `at most ${formatFigure(threshold.atMost)}`,
      value === undefined ? '–' : formatFigure(value),
      verdict,
    ]),
  };
}

/** @param {number} value */
function formatFigure(value) {
  return value >= 100 ? formatCount(value) : String(Number(value.toPrecision(3)));
}

/**
 * How much slower than Dendro the system is, for every request that it completed.
 * @param {Comparison} result @param {string} system
 */
function ratios({ cases }, system) {
  return cases.filter(({ ms }) => ms[system] !== undefined).map(({ ms }) => ratioToDendro(ms, system));
}

/**
 * How much longer Dendro takes for one search than for another.
 * @param {Comparison | undefined} result @param {string} slow @param {string} fast
 */
function searchRatio(result, slow, fast) {
  const [one, other] = [slow, fast].map(label =>
    median(result?.cases.find(each => each.label === `search, ${label}`)?.ms['dendro'] ?? []),
  );
  return one / other;
}

/** @param {SuiteResults['warming']} result @param {'hitMs' | 'queryMs'} name */
function p95Ratio({ withWarmer, withoutWarmer }, name) {
  return percentile(withWarmer[name], 0.95) / percentile(withoutWarmer[name], 0.95);
}
