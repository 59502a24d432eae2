// What is to be reached, held against what was measured.
import { growthOf } from '../parts/growth.mjs';
import { shareOfBare } from '../parts/http-layer.mjs';
import { median } from '../tools/statistics.mjs';
import { ratio } from './compared-table.mjs';
import { ms, times } from './format.mjs';

/** Of each goal: what, how much, the figure, and whether it is reached. Without a figure it was not measured. */
export function judgeGoals(parts) {
  return GOALS.map(({ what, goal, judge }) => {
    try {
      const { figure, reached } = judge(parts);
      return { what, goal, figure, reached };
    } catch {
      return { what, goal, figure: 'not measured', reached: undefined }; // its part was left out, or failed
    }
  });
}

const GOALS = [
  {
    what: 'the closest case against PostgreSQL in Logflare’s layout',
    goal: '10× faster or more',
    judge: ({ postgres }) => {
      const { value, label } = lowest(ratios(postgres, 'postgres'));
      return { figure: `${times(value)} (${label})`, reached: value >= 10 };
    },
  },
  {
    what: 'the middle case against PostgreSQL in Logflare’s layout',
    goal: '40× faster or more',
    judge: ({ postgres }) => {
      const value = median(ratios(postgres, 'postgres').map(each => each.value));
      return { figure: times(value), reached: value >= 40 };
    },
  },
  {
    what: 'the closest case against Debian’s ClickHouse',
    goal: 'at most 1.2 times behind: 0.83× or more; 1× is the moonshot',
    judge: ({ peers }) => {
      const { value, label } = lowest(ratios(peers, 'clickhouse'));
      return { figure: `${times(value)} (${label})`, reached: value >= 1 / 1.2 };
    },
  },
  {
    what: 'the closest logs.all against Debian’s ClickHouse',
    goal: '2× faster or more',
    judge: ({ peers }) => {
      const { value, label } = lowest(
        ratios(peers, 'clickhouse').filter(each => each.endpoint === 'logs.all'),
      );
      return { figure: `${times(value)} (${label})`, reached: value >= 2 };
    },
  },
  {
    what: 'an HTTP answer against the same SQL by itself in DuckDB',
    goal: 'at most 1.2 times, plus 0.5 ms',
    judge: ({ peers }) => {
      const over = peers.cases.map(({ label, ms: samples }) => ({
        label,
        value: median(samples.dendro) - 1.2 * median(samples.duckdb),
      }));
      const { value, label } = over.reduce((a, b) => (b.value > a.value ? b : a));
      return { figure: `1.2 times, plus ${value.toFixed(2)} ms at most (${label})`, reached: value <= 0.5 };
    },
  },
  {
    what: 'a fixed project in the largest platform against the smallest',
    goal: 'at most 1.3 times',
    judge: ({ growth }) => {
      const grown = growth.cases.map(({ label, ms: samples }) => ({ label, value: growthOf(samples) }));
      const { value, label } = grown.reduce((a, b) => (b.value > a.value ? b : a));
      return { figure: `${times(value)} (${label})`, reached: value <= 1.3 };
    },
  },
  {
    what: 'a cached hit against bare node:http',
    goal: '0.75 or more; 0.9 is the moonshot',
    judge: ({ 'http-layer': { servers } }) => {
      const value = shareOfBare(servers, servers[1]);
      return { figure: value.toFixed(2), reached: value >= 0.75 };
    },
  },
  {
    what: '50 clients at once, uncached: p99 against one client’s median',
    goal: 'at most 60 times, and no errors',
    judge: ({ service: { one, many } }) => {
      const value = many.p99 / one.p50;
      const errors = Object.values(many.errors).reduce((sum, each) => sum + each, 0);
      return {
        figure: `${times(value)} (${ms(many.p99)} against ${ms(one.p50)} ms), ${errors} errors`,
        reached: value <= 60 && errors === 0,
      };
    },
  },
  {
    what: 'disk against PostgreSQL',
    goal: 'at most 1/4',
    judge: ({ postgres: { diskBytes } }) => share(diskBytes.dendro / diskBytes.postgres, 0.25),
  },
  {
    what: 'disk against ClickHouse',
    goal: 'not more',
    judge: ({ peers: { diskBytes } }) => share(diskBytes.dendro / diskBytes.clickhouse, 1),
  },
  ...[
    ['idle', 'idle after start', 120],
    ['queries', 'under query load', 400],
    ['intake', 'with intake at 20,000 records a second beside', 750],
  ].map(([name, when, limit]) => ({
    what: `resident memory, ${when}`,
    goal: `${limit} MB`,
    judge: ({ service: { residentMb } }) => ({
      figure: `${residentMb[name]} MB`,
      reached: residentMb[name] <= limit,
    }),
  })),
  {
    what: 'start until the first right answer',
    goal: '600 ms',
    judge: ({ service: { startMs } }) => {
      const value = Math.round(median(startMs));
      return { figure: `${value} ms`, reached: value <= 600 };
    },
  },
];

function ratios({ cases }, name) {
  return cases
    .filter(each => each.ms[name] !== undefined)
    .map(({ label, endpoint, ms: samples }) => ({ label, endpoint, value: ratio(samples, name) }));
}

function lowest(values) {
  return values.reduce((a, b) => (b.value < a.value ? b : a));
}

function share(value, limit) {
  if (Number.isNaN(value)) throw new Error('not measured');
  return { figure: `${value.toFixed(2)} of it`, reached: value <= limit };
}
