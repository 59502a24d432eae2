// Writes the figures of a run into BENCHMARKS.md and draws its plots. The text around the figures is written by hand; each
// group of figures is replaced between the comments `<!-- figures: NAME -->` and `<!-- end: NAME -->`.
// Usage: node bench/report/document.mjs bench/results/<date>-<commit>.json
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMeasured } from '../guard.mjs';
import { SUITES } from '../suites/index.mjs';
import { plotBars, plotGrowth } from './plots.mjs';
import { BUSY_LOAD, readResults, resultsPath } from './results.mjs';
import { formatCount, formatMarkdown, ratioToDendro, SYSTEM_NAMES } from './tables.mjs';

/** @import { Comparison, Results, SuiteResults } from '../types.ts' */

const root = join(import.meta.dirname, '..', '..');

/** Returns the paths of the written files. @param {Results} results */
export function writeDocument(results) {
  const plots = drawPlots(results.suites);
  mkdirSync(join(root, 'docs', 'plots'), { recursive: true });
  for (const { path, svg } of plots) writeFileSync(join(root, path), svg);
  const file = join(root, 'BENCHMARKS.md');
  let text = replaceFigures(readFileSync(file, 'utf8'), 'run', describeRun(results));
  for (const { name, tables } of SUITES) {
    const result = results.suites[name];
    const figures =
      result !== undefined && isMeasured(result)
        ? [
            ...plots.filter(({ suite }) => suite === name).map(({ alt, path }) => `![${alt}](${path})`),
            ...tables(result).map(formatMarkdown),
            ...describePeers(result),
          ].join('\n\n')
        : 'Not measured in this run.';
    text = replaceFigures(text, name, figures);
  }
  writeFileSync(file, text);
  return ['BENCHMARKS.md', ...plots.map(({ path }) => path)];
}

/** @param {string} text @param {string} name @param {string} figures */
function replaceFigures(text, name, figures) {
  const [start, end] = [`<!-- figures: ${name} -->`, `<!-- end: ${name} -->`];
  const [before, rest] = text.split(start);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`BENCHMARKS.md has no section from ${start} to ${end}`);
  return `${before}${start}\n\n${figures}\n\n${end}${after}`;
}

/** @param {Partial<SuiteResults>} suites */
function drawPlots({ peers, postgres, growth }) {
  const plots = [];
  if (peers && hasSystem(peers, 'clickhouse'))
    plots.push({
      suite: 'peers',
      path: 'docs/plots/clickhouse.svg',
      alt: 'Time of every request in Dendro and ClickHouse',
      svg: plotBars(`Uncached requests over HTTP, ${formatCount(2 * peers.perKind)} records`, peers.cases, [
        'dendro',
        'clickhouse',
      ]),
    });
  if (postgres && hasSystem(postgres, 'postgres'))
    plots.push({
      suite: 'postgres',
      path: 'docs/plots/postgres.svg',
      alt: 'Time of every request in Dendro and PostgreSQL',
      svg: plotBars(
        `Uncached requests, ${formatCount(2 * postgres.perKind)} records, PostgreSQL in Logflare’s layout`,
        postgres.cases,
        ['dendro', 'postgres'],
      ),
    });
  if (growth && isMeasured(growth))
    plots.push({
      suite: 'growth',
      path: 'docs/plots/growth.svg',
      alt: 'Time of the same requests in a small and in a large data set',
      svg: plotGrowth('The same project in data sets of different size', growth.cases),
    });
  return plots;
}

/** @param {Comparison} suite @param {string} system */
function hasSystem(suite, system) {
  return isMeasured(suite) && suite.cases.some(({ ms }) => ms[system] !== undefined);
}

/** @param {Results} results */
function describeRun(results) {
  const { machine, commit, date, seconds, loadBefore } = results;
  const path = resultsPath(results);
  const facts = [
    [
      'machine',
      `${machine.cores} cores (${machine.cpu}, ${machine.arch}), ${machine.memoryGiB} GiB of memory`,
    ],
    ['Node.js', machine.node],
    ['commit', commit],
    ['date', date.slice(0, 10)],
    ['duration', `${Math.round(seconds / 60)} minutes`],
    ['load average before the run', loadBefore.toFixed(2)],
    ['all samples', `[${path}](${path})`],
  ];
  const lines = ['| | |', '|---|---|', ...facts.map(([name, value]) => `| ${name} | ${value} |`)];
  if (loadBefore > BUSY_LOAD)
    lines.push('', '**The machine was busy during this run. Do not compare these figures with others.**');
  return lines.join('\n');
}

/**
 * One paragraph per peer: whether it uses less or more disk space than Dendro, and in which requests it is faster. DuckDB alone
 * is not a peer: it is Dendro's own engine without the service around it.
 * @param {SuiteResults[keyof SuiteResults]} result
 */
function describePeers(result) {
  if (!('cases' in result && 'perKind' in result)) return [];
  const { cases, diskBytes } = result;
  return ['clickhouse', 'postgres']
    .filter(system => hasSystem(result, system))
    .map(system => {
      const name = SYSTEM_NAMES[system];
      const faster = cases.filter(({ ms }) => ms[system] !== undefined && ratioToDendro(ms, system) < 1);
      const list = faster.map(({ label }) => `\n- ${label}`).join('');
      const time =
        faster.length === 0
          ? `${name} is faster than Dendro in none of the ${cases.length} requests.`
          : `${name} is faster than Dendro in ${faster.length} of the ${cases.length} requests:${list}`;
      const disk = diskBytes[system] < diskBytes['dendro'] ? 'less' : 'more';
      return `${name} uses ${disk} disk space than Dendro. ${time}`;
    });
}

if (process.argv[1] === import.meta.filename)
  process.stdout.write(`${writeDocument(readResults(process.argv[2])).join('\n')}\n`);
