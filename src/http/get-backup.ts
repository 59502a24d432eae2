// GET /api/admin/backup: a copy of the data directory at one moment, as a tar archive.
import { takeBackup } from '../backup/take-backup.ts';
import { authenticateAdmin } from './authenticate.ts';
import { type HttpResponse, toHeaderList } from './response.ts';
import type { ServingDependencies } from './route-dependencies.ts';
import type { HttpRequest } from './router.ts';

export const BACKUP_PATH = '/api/admin/backup';

export async function getBackup(serving: ServingDependencies, request: HttpRequest): Promise<HttpResponse> {
  authenticateAdmin(serving, request.raw);
  const headers = { 'Content-Type': 'application/x-tar', 'Cache-Control': 'no-store' };
  const { id, signal } = request;
  const stream = {
    ...(await takeBackup(serving.backup)),
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
