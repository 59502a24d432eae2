// The calls that are measured: every endpoint, a large and a small project, the intervals and tiers that matter.
import { FUNCTION_IDS, listProjects } from './seed-records.mjs';

/** Ranks by size: the largest project, and one that is far down among the small ones. */
const SMALL_RANK = 1500;

export function listCases() {
  const projects = listProjects();
  const large = projects[0];
  const small = projects[SMALL_RANK];
  const [functionId] = FUNCTION_IDS;
  const yesterday = new Date(Date.now() - 86_400_000).toISOString();
  const makeCase = (endpoint, size, parameters) => ({
    label: `${endpoint} ${size} ${Object.entries(parameters)
      .map(([name, value]) => (name.startsWith('iso_') ? name.slice('iso_timestamp_'.length) : value))
      .join(' ')}`,
    endpoint,
    parameters: { project: size === 'large' ? large : small, ...parameters },
  });
  return [
    ...['5min', '15min', '1hr', '1day', '7day'].map(interval =>
      makeCase('functions.invocation-stats', 'large', { interval }),
    ),
    makeCase('functions.invocation-stats', 'large', { interval: '7day', function_id: functionId }),
    makeCase('functions.invocation-stats', 'small', { interval: '1day' }),
    makeCase('functions.invocation-stats', 'small', { interval: '7day' }),
    ...['minutely', 'hourly', 'daily'].map(interval => makeCase('usage.api-counts', 'large', { interval })),
    makeCase('usage.api-counts', 'small', { interval: 'daily' }),
    ...['FREE', 'PRO', 'PAYG'].map(project_tier => makeCase('logs.all', 'large', { project_tier })),
    makeCase('logs.all', 'large', { project_tier: 'ENTERPRISE', iso_timestamp_end: yesterday }),
    makeCase('logs.all', 'small', { project_tier: 'FREE' }),
    makeCase('logs.all', 'small', { project_tier: 'PAYG' }),
  ];
}
