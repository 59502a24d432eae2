// Recognizes the errors of a full disk. Node has no name for EDQUOT, an exceeded quota: its code is `Unknown system error -122`.
import { constants } from 'node:os';

export function isDiskFull(error: unknown): boolean {
  return (error as NodeJS.ErrnoException)?.code === 'ENOSPC' || isQuotaExceeded(error);
}

export function isQuotaExceeded(error: unknown): boolean {
  return (error as NodeJS.ErrnoException)?.errno === -constants.errno.EDQUOT;
}
