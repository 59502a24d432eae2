// Checks the free disk space before a write. If a commit or a checkpoint runs out of space, DuckDB invalidates its file until
// the next start. So flushes, rewrites of parts, deletions and checkpoints start only if there is enough space. `append` does not
// check it.
import { statSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { STORE_FILE } from '../../system/data-directory.ts';

/** Space for the partial row group that a checkpoint rewrites, and for blocks that are not full. */
const RESERVE_BYTES = 64 * 1024 * 1024;

export class DiskSpace {
  readonly #dataDirectory: string;

  constructor(dataDirectory: string) {
    this.#dataDirectory = dataDirectory;
  }

  /** Size of the file and its write-ahead log. Synchronous, for metrics. */
  readFileBytes(): number {
    const paths = [STORE_FILE, `${STORE_FILE}.wal`].map(name => join(this.#dataDirectory, name));
    return paths.reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
  }

  /** Throws unless this many bytes can be written twice: to the write-ahead log and to the file. */
  async require(bytes: number): Promise<void> {
    const shortage = await this.#findShortage(2 * bytes);
    if (shortage !== undefined) throw new Error(shortage);
  }

  /** Throws unless there is space for a copy of `rows` rows, whose size is estimated as a share of the file. */
  async requireForRows(rows: number, totalRows: number): Promise<void> {
    const { size } = await stat(join(this.#dataDirectory, STORE_FILE));
    await this.require(Math.ceil((size * rows) / Math.max(1, totalRows)));
  }

  /** Whether the disk has space for a checkpoint, which writes everything in the write-ahead log to the file. */
  async canCheckpoint(): Promise<boolean> {
    const log = await stat(join(this.#dataDirectory, `${STORE_FILE}.wal`)).catch(() => undefined);
    return (await this.#findShortage(log?.size ?? 0)) === undefined;
  }

  async #findShortage(bytes: number): Promise<string | undefined> {
    const { bavail, bsize } = await statfs(this.#dataDirectory);
    const [free, needed] = [bavail * bsize, bytes + RESERVE_BYTES];
    return free < needed
      ? `not enough disk space: ${free} bytes are free, ${needed} bytes are needed`
      : undefined;
  }
}
