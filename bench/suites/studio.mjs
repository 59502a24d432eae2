// Suite `studio`: the queries of Supabase Studio beside the same searches through logs.search and logs.histogram, on one server; and
// the texts that take the compiler longest to refuse.
import { pickProjects } from '../records/dataset.mjs';
import { comparisonTable, formatCount, formatMs } from '../report/tables.mjs';
import { serveDendro } from '../systems/dendro.mjs';
import { median } from '../tools/statistics.mjs';
import { compareSystems } from './compare-systems.mjs';

/** @import { BenchRequest, Context, Report, Rounds, SuiteResults, System } from '../types.ts' */

const FLAGS = ['--cache-bytes', '0', '--packs', 'explore', '--studio'];
const JOINS =
  'cross join unnest(metadata) as m cross join unnest(m.request) as request cross join unnest(m.response) as response';

/** @param {Context} context @param {Rounds} rounds @param {Report} report */
export async function measureStudio(context, rounds, report) {
  const server = await serveDendro(context.workspace, await context.loadLargeDataset(report), {
    flags: FLAGS,
  });
  try {
    const systems = [adapt(server, 'dendro'), adapt(server, 'studio')];
    const comparison = await compareSystems(listRequests(), systems, rounds, report);
    report('refused texts');
    return { perKind: context.largeDataset.perKind, ...comparison, refused: await timeRefused(server) };
  } finally {
    await server.stop();
  }
}

/**
 * Both systems are the same server. They return the same columns of rows, or the sum of the counts.
 * @param {Awaited<ReturnType<typeof serveDendro>>} server @param {string} name
 * @returns {System}
 */
function adapt(server, name) {
  return {
    name,
    command: server.command,
    async query(request, withRows) {
      const { sql = '', endpoint, parameters } = request;
      const { query: _, ...common } = parameters;
      const { ms, rows } =
        name === 'studio'
          ? await server.query({ endpoint: 'logs.all', parameters: { ...common, sql } }, withRows)
          : await server.query(request, withRows);
      if (endpoint === 'logs.search')
        return { ms, rows: rows.map(([id, time, message]) => [id, time, message, null]) };
      const counts = rows.map(row => Number(row.at(-1)));
      return { ms, rows: withRows ? [[counts.reduce((sum, count) => sum + count, 0)]] : [] };
    },
    stop: async () => {},
  };
}

/**
 * Rows and counts of one day: of a page without a filter, and with words that occur in many records, in a few and in none, and of a path.
 * @returns {BenchRequest[]}
 */
function listRequests() {
  const { largest } = pickProjects();
  /** @type {Record<string, [query: string, where: string]>} */
  const searches = {
    'no filter': ['', ''],
    common: ['firefox', "where regexp_contains(event_message, '(?i)firefox')"],
    rare: ['203.0.113.7', "where regexp_contains(event_message, '(?i)203[.]0[.]113[.]7')"],
    none: ['zebra-crossing', "where regexp_contains(event_message, '(?i)zebra-crossing')"],
    path: ['path:/rest/*', "where request.path like '/rest/%'"],
  };
  // Without an end, only logs.histogram ends now. The data set has records of the near future.
  const range = { project_tier: 'FREE', iso_timestamp_end: new Date().toISOString() };
  return Object.entries(searches).flatMap(([label, [query, where]]) => {
    const columns = 'id, timestamp, event_message, request.method, request.path, response.status_code';
    const common = { parameters: { project: largest, query, ...range } };
    return [
      {
        ...common,
        label: `rows, ${label}`,
        endpoint: 'logs.search',
        sql: `select ${columns} from edge_logs ${JOINS} ${where} order by timestamp desc limit 100`,
      },
      {
        ...common,
        label: `count, ${label}`,
        endpoint: 'logs.histogram',
        sql: `select count(*) as count from edge_logs ${JOINS} ${where}`,
      },
    ];
  });
}

/** As long as a URL allows. @type {Record<string, string>} */
const REFUSED = {
  'a chain of 1,300 conditions': `select id from x where ${Array(1300).fill('a').join(' and ')}`,
  '1,200 pairs of parentheses': `select id from x where ${'('.repeat(1200)}a${')'.repeat(1200)}`,
  '1,700 negations': `select id from x where ${'not '.repeat(1700)}a`,
  '700 nested subqueries': `select id from ${'(select '.repeat(700)}`,
  '1,300 columns': `select ${Array(1300).fill('a').join(', ')} from x`,
};

/** @param {Awaited<ReturnType<typeof serveDendro>>} server */
async function timeRefused(server) {
  /** @type {Record<string, number>} */
  const ms = {};
  for (const [label, sql] of Object.entries(REFUSED)) {
    /** @type {number[]} */
    const samples = [];
    for (let round = 0; round < 9; round++) {
      const start = performance.now();
      const parameters = { project: 'any', sql };
      const error = await server.query({ endpoint: 'logs.all', parameters }).then(
        () => undefined,
        reason => String(reason),
      );
      if (!error?.includes('status 400')) throw new Error(`${label}: not refused: ${error?.slice(-200)}`);
      samples.push(performance.now() - start);
    }
    ms[label] = median(samples);
  }
  return ms;
}

/** @param {SuiteResults['studio']} result */
export function studioTables({ perKind, refused, ...comparison }) {
  const title = `Queries of Studio beside logs.search and logs.histogram, one day of ${formatCount(2 * perKind)} records, median and p95 in milliseconds`;
  return [
    comparisonTable(title, comparison),
    {
      title: 'Texts that Studio’s compiler refuses, median in milliseconds',
      header: ['text', 'ms'],
      rows: Object.entries(refused).map(([label, ms]) => [label, formatMs(ms)]),
    },
  ];
}
