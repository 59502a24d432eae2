// Recognizes the errors of a full disk. For an exceeded quota (EDQUOT), the `code` of Node's error is only the text
// `Unknown system error -122` (on Linux), so this error is recognized by its number.
import { constants } from 'node:os';

export function isDiskFull(error: unknown): boolean {
  return (error as NodeJS.ErrnoException)?.code === 'ENOSPC' || isQuotaExceeded(error);
}

/** The message for an exceeded quota. */
export const QUOTA_EXCEEDED = 'EDQUOT: the disk quota is exceeded';

export function isQuotaExceeded(error: unknown): boolean {
  return (error as NodeJS.ErrnoException)?.errno === -constants.errno.EDQUOT;
}
