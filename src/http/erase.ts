// POST /api/admin/erase starts the erasure of a project. GET returns the state of the current or the last erasure: running, done
// or failed. An erasure can take longer than clients wait for a response, so the client polls the state.
import { DendroError } from '../domain/errors.ts';
import { formatTimestamp, parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import type { EraseStatus } from '../intake/erasure.ts';
import type { EraseScope } from '../store/store.ts';
import { authenticateAdmin } from './authenticate.ts';
import { readJsonObject } from './request-body.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import type { HttpRequest } from './router.ts';
import type { ServingDependencies } from './serving.ts';

const MAX_BODY_BYTES = 64 * 1024;

export async function postErase(serving: ServingDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  authenticateAdmin(serving, raw);
  const { erasure, uploadRate } = serving;
  const body = await readJsonObject(raw, {
    ...{ uploadRate, maxBytes: MAX_BODY_BYTES, keys: ['project', 'before'], example: '{"project":"abc"}' },
  });
  await erasure.start(readScope(body));
  return statusResponse(202, erasure.status);
}

export async function getErase(serving: ServingDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  authenticateAdmin(serving, raw);
  return statusResponse(200, serving.erasure.status);
}

function readScope({ project, before }: Readonly<Record<string, unknown>>): EraseScope {
  if (typeof project !== 'string' || project === '')
    throw new DendroError('missing_parameter', 'project must be a non-empty string: the project to erase', {
      param: 'project',
    });
  if (before === undefined || before === null) return { project };
  const beforeMicros = typeof before === 'string' ? parseTimestamp(before) : undefined;
  if (beforeMicros === undefined)
    throw new DendroError('invalid_parameter', `before is not a time; allowed: ${TIMESTAMP_FORMS}`, {
      param: 'before',
    });
  return { project, beforeMicros };
}

function statusResponse(statusCode: number, status: EraseStatus | undefined): HttpResponse {
  const headers = { 'Cache-Control': 'no-store' };
  if (status === undefined) return jsonResponse(statusCode, { result: null }, headers);
  const { scope, state, report } = status;
  const result = {
    state,
    project: scope.project,
    before: scope.beforeMicros === undefined ? null : formatTimestamp(scope.beforeMicros),
    ...(report && {
      records: report.records,
      quarantined: report.quarantined,
      damaged_files: report.damagedFiles,
    }),
  };
  return jsonResponse(statusCode, { result }, headers);
}
