// The calls that are compared: every endpoint, projects of three sizes, the intervals and tiers that matter.
import { pickProjects } from '../records/projects.mjs';

const TIER_OF_DAYS = { '1 day': 'FREE', '90 days': 'PAYG' };

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
    counts('literal, 1 minute of 1 hour', largest, 'minutely'),
    counts('literal, 1 hour', largest, 'hourly'),
    counts('literal, 7 days', largest, 'daily'),
    counts('literal, 7 days, small', small, 'daily'),
    counts('regular expression, 7 days', `^https://(${largest}|[a-f][a-z]+)[.].*/(rest|auth)/v1`, 'daily'),
    { ...counts('pinned token, middle, 7 days', middle, 'daily'), pinnedProject: middle },
    stats('largest', largest, '5min'),
    stats('largest', largest, '1hr'),
    stats('largest', largest, '1day'),
    stats('largest', largest, '7day'),
    {
      ...stats('largest', largest, '7day'),
      label: 'invocation-stats, largest, 7day, one function',
      parameters: { project: largest, interval: '7day', function_id: 'hello' },
    },
    stats('middle', middle, '1day'),
    stats('middle', middle, '7day'),
    stats('small', small, '7day'),
  ];
}

/** What a project's callers ask for whatever else is on the platform. */
export function listSteadyCases(steady) {
  return steady
    .flatMap(({ size, project }) => [
      {
        size,
        question: 'logs.all, 1 day',
        endpoint: 'logs.all',
        parameters: { project, project_tier: 'FREE' },
      },
      {
        size,
        question: 'logs.all, 90 days',
        endpoint: 'logs.all',
        parameters: { project, project_tier: 'PAYG' },
      },
      { size, question: 'invocation-stats, 1day', ...stats(size, project, '1day') },
      { size, question: 'invocation-stats, 7day', ...stats(size, project, '7day') },
    ])
    .map(call => ({ ...call, label: `${call.question}, ${call.size}` }));
}

function counts(label, project, interval) {
  return { label: `api-counts, ${label}`, endpoint: 'usage.api-counts', parameters: { project, interval } };
}

function stats(size, project, interval) {
  return {
    label: `invocation-stats, ${size}, ${interval}`,
    endpoint: 'functions.invocation-stats',
    parameters: { project, interval },
  };
}
