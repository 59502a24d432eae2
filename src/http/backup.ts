// GET /api/admin/backup: a copy of the data directory at one moment, as a tar archive. POST: the same without the parts that the
// client has.
import { takeBackup } from '../backup/take-backup.ts';
import { DendroError } from '../domain/errors.ts';
import { authenticateAdmin } from './authenticate.ts';
import { readJsonObject } from './request-body.ts';
import { type HttpResponse, toHeaderList } from './response.ts';
import type { HttpRequest } from './router.ts';
import type { ServingDependencies } from './serving.ts';

export const BACKUP_PATH = '/api/admin/backup';

/** Enough for 15,000 parts. */
const MAX_BODY_BYTES = 1024 * 1024;
const SHA256 = /^[0-9a-f]{64}$/;

export async function getBackup(serving: ServingDependencies, request: HttpRequest): Promise<HttpResponse> {
  authenticateAdmin(serving, request.raw);
  return sendBackup(serving, request, new Set());
}

export async function postBackup(serving: ServingDependencies, request: HttpRequest): Promise<HttpResponse> {
  authenticateAdmin(serving, request.raw);
  const { have } = await readJsonObject(request.raw, {
    ...{ uploadRate: serving.uploadRate, maxBytes: MAX_BODY_BYTES, keys: ['have'], example: '{"have":[]}' },
  });
  if (!Array.isArray(have) || !have.every(each => typeof each === 'string' && SHA256.test(each)))
    throw new DendroError(
      'invalid_parameter',
      'have must be a list of SHA-256 checksums, each with 64 hexadecimal digits in lower case',
      { param: 'have' },
    );
  return sendBackup(serving, request, new Set<string>(have));
}

async function sendBackup(
  serving: ServingDependencies,
  { id, signal }: HttpRequest,
  omitted: ReadonlySet<string>,
): Promise<HttpResponse> {
  const headers = { 'Content-Type': 'application/x-tar', 'Cache-Control': 'no-store' };
  const stream = {
    ...(await takeBackup(serving.backup, omitted)),
    /** The status 200 is already sent, so the error is only logged. A client that disconnects is not an error. */
    onError(error: unknown) {
      if (!signal.aborted)
        serving.backup.observe({
          type: 'request_failed',
          route: BACKUP_PATH,
          endpoint: undefined,
          status: 200,
          id,
          error,
        });
    },
  };
  return { status: 200, headers: toHeaderList(headers), body: '', stream };
}
