// Converts the store of an earlier release, one DuckDB file that changed in place, to parts. The parts and the manifest are written
// to `converting/`. When they are complete, it is renamed to `parts/`, then the manifest is moved to its place, and at last the
// marker replaces the old file. An interrupted conversion starts again or, after the first rename, continues.
import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../../domain/errors.ts';
import { createDirectory, syncDirectory, writeFileDurably } from '../../../system/files.ts';
import { requireDiskSpace } from '../database.ts';
import { emptyManifest, MANIFEST_FILE, PARTS_DIRECTORY, writeManifest } from '../manifest.ts';
import { createMarker, hasOldStore, OLD_STORE_FILE, refuseLostManifest } from './marker.ts';
import { OldStore } from './old-store.ts';
import { Conversion, type WritePartsOptions } from './write-parts.ts';

const CONVERTING_DIRECTORY = 'converting';
/** Parts have more columns than old tables, so they can need more space. */
const GROWTH = 1.2;

export type ConvertOptions = Omit<WritePartsOptions, 'partsDirectory' | 'threads'> & {
  readonly threads?: number | undefined;
};

/** The caller must hold the lock of the data directory. Throws an OperatorError if the store cannot be converted. */
export async function convertIfNeeded(options: ConvertOptions): Promise<void> {
  const dataDirectory = resolve(options.dataDirectory);
  refuseLostManifest(dataDirectory);
  const records = hasOldStore(dataDirectory) ? await convert({ ...options, dataDirectory }) : undefined;
  try {
    await finish(dataDirectory);
  } catch (error) {
    throw new OperatorError(
      `the conversion of the store in ${dataDirectory} is not finished: ${(error as Error).message}; the next start continues it`,
    );
  }
  if (records !== undefined) options.observe({ type: 'converted', records });
}

/** Creates `parts/`, with the manifest and the marker in it. Returns the number of records. */
async function convert(options: ConvertOptions): Promise<number> {
  const { dataDirectory, threads = availableParallelism() } = options;
  const partsDirectory = join(dataDirectory, CONVERTING_DIRECTORY);
  const store = await OldStore.open({ ...options, threads });
  const conversion = new Conversion(store, { ...options, threads, partsDirectory });
  try {
    await requireNoParts(dataDirectory);
    await rm(partsDirectory, { recursive: true, force: true });
    await requireDiskSpace(dataDirectory, Math.ceil((await store.usedBytes()) * GROWTH));
    createDirectory(partsDirectory);
    const { parts } = conversion;
    const storedUpTo = await store.readStoredUpTo();
    await conversion.run();
    const { nextPart } = conversion;
    const manifest = { ...emptyManifest(), nextPart, storedUpTo, parts };
    await writeManifest(partsDirectory, manifest);
    await writeFileDurably(join(partsDirectory, OLD_STORE_FILE), createMarker());
    await rename(partsDirectory, join(dataDirectory, PARTS_DIRECTORY));
    return parts.reduce((sum, part) => sum + part.records, 0);
  } catch (error) {
    await rm(partsDirectory, { recursive: true, force: true }).catch(() => {}); // the next start deletes it
    const [reason = ''] = (error as Error).message.split('\n', 1);
    // To read one record of an old table, DuckDB can need the memory of the 2,048 records around it.
    const hint = reason.startsWith('Out of Memory') ? '. Start once with a higher --memory-limit' : '';
    throw new OperatorError(
      `cannot convert the store of an earlier release in ${dataDirectory}: ${reason}${hint}. Nothing was changed`,
    );
  } finally {
    conversion.store.close();
  }
}

async function requireNoParts(dataDirectory: string): Promise<void> {
  const parts = join(dataDirectory, PARTS_DIRECTORY);
  const [file] = existsSync(parts) ? await readdir(parts) : [];
  if (file !== undefined)
    throw new Error(`${join(parts, file)} is in the way, which that release did not write; move it away`);
}

/** If a conversion has left the manifest or the marker in `parts/`, moves them to their places. Deletes the rest of the old store. */
async function finish(dataDirectory: string): Promise<void> {
  const parts = join(dataDirectory, PARTS_DIRECTORY);
  for (const name of [MANIFEST_FILE, OLD_STORE_FILE]) {
    const [from, to] = [join(parts, name), join(dataDirectory, name)];
    if (!existsSync(from)) continue;
    await syncDirectory(dataDirectory);
    // After a power cut, the manifest can be in both places, and the one in `parts/` is the older one.
    if (name === MANIFEST_FILE && existsSync(to)) await rm(from);
    else await rename(from, to);
    await syncDirectory(dataDirectory);
    await syncDirectory(parts);
  }
  if (!existsSync(join(dataDirectory, MANIFEST_FILE))) return;
  await rm(join(dataDirectory, `${OLD_STORE_FILE}.wal`), { force: true });
}
