// Converts the store of an earlier release, one DuckDB file that changed in place, to parts.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Observe } from '../../../observe/event.ts';
import { MANIFEST_FILE } from '../manifest.ts';

/** The store of earlier releases. */
export const OLD_STORE_FILE = 'dendro.duckdb';

export interface ConvertOptions {
  readonly dataDirectory: string;
  readonly memoryLimit: string;
  readonly threads?: number | undefined;
  /** Convert the rest if a table cannot be read. */
  readonly acceptLoss?: boolean | undefined;
  readonly observe: Observe;
}

/** Whether the directory has a store that must be converted before it can be opened. */
export function needsConversion(dataDirectory: string): boolean {
  return existsSync(join(dataDirectory, OLD_STORE_FILE)) && !existsSync(join(dataDirectory, MANIFEST_FILE));
}

/** The caller must hold the lock of the data directory. */
export async function convertOldStore(_: ConvertOptions): Promise<void> {
  throw new Error('not implemented');
}
