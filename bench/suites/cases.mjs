// The requests that are measured: every built-in endpoint, projects of three sizes, the intervals and tiers that differ in cost.
import { pickProjects } from '../records/dataset.mjs';

/** @import { BenchRequest, FixedProject } from '../types.ts' */

/** The tier of a project decides how many days logs.all reads. */
const TIER_OF_DAYS = { '1 day': 'FREE', '90 days': 'PAYG' };

/** @returns {BenchRequest[]} */
export function listCases() {
  const projects = pickProjects();
  const { largest, middle, small } = projects;
  return [
    ...Object.entries(projects).flatMap(([size, project]) =>
      Object.entries(TIER_OF_DAYS).map(([days, project_tier]) => ({
        label: `logs.all, ${size}, ${days}`,
        endpoint: 'logs.all',
        parameters: { project, project_tier },
      })),
    ),
    apiCounts('literal, 1 minute of 1 hour', largest, 'minutely'),
    apiCounts('literal, 1 hour', largest, 'hourly'),
    apiCounts('literal, 7 days', largest, 'daily'),
    apiCounts('literal, 7 days, small', small, 'daily'),
    apiCounts('regular expression, 7 days', `^https://(${largest}|[a-f][a-z]+)[.].*/(rest|auth)/v1`, 'daily'),
    { ...apiCounts('pinned token, middle, 7 days', middle, 'daily'), pinnedProject: middle },
    invocationStats('largest', largest, '5min'),
    invocationStats('largest', largest, '1hr'),
    invocationStats('largest', largest, '1day'),
    invocationStats('largest', largest, '7day'),
    {
      ...invocationStats('largest', largest, '7day'),
      label: 'invocation-stats, largest, 7day, one function',
      parameters: { project: largest, interval: '7day', function_id: 'hello' },
    },
    invocationStats('middle', middle, '1day'),
    invocationStats('middle', middle, '7day'),
    invocationStats('small', small, '7day'),
  ];
}

/**
 * Requests for projects that have the same records in every data set.
 * @param {FixedProject[]} fixedProjects
 * @returns {BenchRequest[]}
 */
export function listFixedCases(fixedProjects) {
  return fixedProjects.flatMap(({ size, project }) => [
    ...Object.entries(TIER_OF_DAYS).map(([days, project_tier]) => ({
      label: `logs.all, ${days}, ${size}`,
      size,
      query: `logs.all, ${days}`,
      endpoint: 'logs.all',
      parameters: { project, project_tier },
    })),
    ...['1day', '7day'].map(interval => ({
      ...invocationStats(size, project, interval),
      label: `invocation-stats, ${interval}, ${size}`,
      size,
      query: `invocation-stats, ${interval}`,
    })),
  ]);
}

/** @param {string} label @param {string} project @param {string} interval */
function apiCounts(label, project, interval) {
  return { label: `api-counts, ${label}`, endpoint: 'usage.api-counts', parameters: { project, interval } };
}

/** @param {string} size @param {string} project @param {string} interval */
function invocationStats(size, project, interval) {
  return {
    label: `invocation-stats, ${size}, ${interval}`,
    endpoint: 'functions.invocation-stats',
    parameters: { project, interval },
  };
}
