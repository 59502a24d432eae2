// Puts the figures of a run into BENCHMARKS.md, between two marks, and draws the plots that it and the README show. Called
// by hand it does so for a result file: node bench/report/document.mjs bench/results/<date>-<commit>.json
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PARTS } from '../parts/index.mjs';
import { plotBars } from './bar-plot.mjs';
import { count } from './format.mjs';
import { judgeGoals } from './goals.mjs';
import { plotGrowth } from './line-plot.mjs';
import { BUSY_LOAD, resultName } from './results.mjs';
import { formatMarkdown, goalsTable } from './table.mjs';

const root = join(import.meta.dirname, '..', '..');
const START = '<!-- figures: npm run bench writes what stands from here -->';
const END = '<!-- to here -->';

/** Answers the files that were written. */
export function writeDocument(results) {
  const plots = drawPlots(results.parts);
  mkdirSync(join(root, 'docs', 'plots'), { recursive: true });
  for (const { name, svg } of plots) writeFileSync(join(root, 'docs', 'plots', name), svg);
  const file = join(root, 'BENCHMARKS.md');
  const text = readFileSync(file, 'utf8');
  const [before, after] = [text.split(START)[0], text.split(END)[1]];
  if (after === undefined) throw new Error('BENCHMARKS.md has lost the marks that the figures stand between');
  writeFileSync(file, `${before}${START}\n\n${describe(results, plots)}\n\n${END}${after}`);
  return ['BENCHMARKS.md', ...plots.map(({ name }) => `docs/plots/${name}`)];
}

function drawPlots({ peers, postgres, growth }) {
  const of = ({ perKind }) => `${count(2 * perKind)} records`;
  return [
    peers?.cases &&
      hasSystem(peers, 'clickhouse') && {
        name: 'clickhouse.svg',
        alt: 'Dendro and ClickHouse, call by call',
        svg: plotBars(`Uncached answers over HTTP on ${of(peers)}`, peers.cases, ['dendro', 'clickhouse']),
      },
    postgres?.cases && {
      name: 'postgres.svg',
      alt: 'Dendro and PostgreSQL, call by call',
      svg: plotBars(`Uncached answers on ${of(postgres)}, PostgreSQL in Logflare’s layout`, postgres.cases, [
        'dendro',
        'postgres',
      ]),
    },
    growth?.cases && {
      name: 'growth.svg',
      alt: 'What the same project costs in a small and in a large platform',
      svg: plotGrowth('The same project, as the platform around it grows', growth.cases),
    },
  ].filter(Boolean);
}

const hasSystem = ({ cases }, name) => cases.some(({ ms }) => ms[name] !== undefined);

function describe(results, plots) {
  const { machine, commit, date, seconds, loadBefore, parts } = results;
  return [
    `Commit ${commit}, ${date.slice(0, 10)}, ${machine.cores} cores (${machine.cpu}, ${machine.arch}), ${machine.memoryGiB} GiB, ` +
      `Node ${machine.node}; load of the machine before ${loadBefore.toFixed(2)}; ${Math.round(seconds / 60)} minutes. ` +
      `Every single measurement: [${resultName(results)}](${resultName(results)}).`,
    ...(loadBefore > BUSY_LOAD
      ? ['**The machine was busy with other work: these figures show that the run works, and nothing else.**']
      : []),
    formatMarkdown(goalsTable(judgeGoals(parts))),
    ...plots.map(({ name, alt }) => `![${alt}](docs/plots/${name})`),
    ...PARTS.flatMap(({ name, tables }) =>
      isMeasured(parts[name])
        ? tables(parts[name]).map(formatMarkdown)
        : [`The part ${name} was not measured.`],
    ),
  ].join('\n\n');
}

const isMeasured = part => part !== undefined && part.failed === undefined && part.leftOut === undefined;

if (process.argv[1] === import.meta.filename)
  process.stdout.write(`${writeDocument(JSON.parse(readFileSync(process.argv[2], 'utf8'))).join('\n')}\n`);
