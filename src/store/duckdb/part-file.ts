// The files of parts: their names, and what is damaged: each file is compared with the size and the checksum in the manifest.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Damage } from '../../domain/damage.ts';
import type { LogKind } from '../../domain/log-columns.ts';
import { hashFile } from '../../system/open-file.ts';
import type { StoreContent } from '../store.ts';
import {
  contentOf,
  emptyManifest,
  PART_FILE,
  PARTS_DIRECTORY,
  type PartEntry,
  readManifest,
  type SetAsideEntry,
} from './manifest.ts';

export function partFileName(kind: LogKind, number: number): string {
  return `${kind}-${String(number).padStart(6, '0')}.duckdb`;
}

/** The name of its file until the manifest names the part. */
export function temporaryName(file: string): string {
  return `${file}.tmp`;
}

/** For a part that the manifest names: a crash interrupted its commit. The next start renames it. */
export function hasTemporaryName(partsDirectory: string, file: string): boolean {
  return !existsSync(join(partsDirectory, file)) && existsSync(join(partsDirectory, temporaryName(file)));
}

function findPath(partsDirectory: string, file: string): string {
  return join(partsDirectory, hasTemporaryName(partsDirectory, file) ? temporaryName(file) : file);
}

/** The name under which the part is attached to DuckDB. */
export function partAlias(file: string): string {
  const [, kind, number] = PART_FILE.exec(file) ?? [];
  return `${kind}_part_${Number(number)}`;
}

/** What is wrong with the file of a part. */
export interface PartProblem {
  readonly reason: SetAsideEntry['reason'];
  readonly problem: string;
}

/** Compares only the size. */
export function findSizeProblem(partsDirectory: string, { file, bytes }: PartEntry): PartProblem | undefined {
  const size = statSync(findPath(partsDirectory, file), { throwIfNoEntry: false })?.size;
  if (size === undefined) return { reason: 'missing', problem: 'the file does not exist' };
  if (size === bytes) return undefined;
  return { reason: 'damaged', problem: `the file has ${size} bytes, but ${bytes} were written` };
}

/** Reads the whole file. Returns undefined if it is as it was written. Throws if the file cannot be opened or read. */
export async function findPartProblem(
  partsDirectory: string,
  entry: PartEntry,
  onRead?: (bytes: number) => Promise<void> | void,
): Promise<PartProblem | undefined> {
  const sizeProblem = findSizeProblem(partsDirectory, entry);
  if (sizeProblem !== undefined) return sizeProblem;
  const found = await hashFile(findPath(partsDirectory, entry.file), onRead).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EIO') throw error;
      return { sha256: '' }; // the disk cannot read it
    },
  );
  if (found.sha256 === entry.sha256) return undefined;
  return { reason: 'damaged', problem: 'its content differs from what was written' };
}

export interface InspectOptions {
  readonly dataDirectory: string;
  /** Compare only the sizes of the files. */
  readonly onlySizes?: boolean;
  /** Called with the number of bytes that were read, and how many there are. */
  readonly onProgress?: (bytes: number, total: number) => void;
}

export interface InspectedParts extends StoreContent {
  /** Of the parts that queries read. */
  readonly damages: readonly Damage[];
  /** The parts that were set aside earlier. */
  readonly setAside: readonly Damage[];
}

/** A part that the manifest names. */
export interface NamedPart {
  /** Relative to the data directory. */
  readonly path: string;
  readonly sha256: string;
  readonly isSetAside: boolean;
}

/** Throws an OperatorError if the manifest cannot be used. */
export function listParts(dataDirectory: string): readonly NamedPart[] {
  const { parts = [], setAside = [] } = readManifest(dataDirectory) ?? {};
  return [...parts, ...setAside].map(part => ({
    path: `${PARTS_DIRECTORY}/${part.file}`,
    sha256: part.sha256,
    isSetAside: 'reason' in part,
  }));
}

/** Changes nothing. The caller must hold the lock of the data directory. Throws an OperatorError if the manifest cannot be used. */
export async function inspectParts({
  dataDirectory,
  onlySizes = false,
  onProgress = () => {},
}: InspectOptions): Promise<InspectedParts> {
  const manifest = readManifest(dataDirectory) ?? emptyManifest();
  const directory = join(dataDirectory, PARTS_DIRECTORY);
  const total = manifest.parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const damages: Damage[] = [];
  let read = 0;
  const onRead = (bytes: number) => {
    read += bytes;
    onProgress(read, total);
  };
  for (const part of manifest.parts) {
    const found = onlySizes
      ? findSizeProblem(directory, part)
      : await findPartProblem(directory, part, onRead);
    if (found !== undefined) damages.push(toDamage(part.file, found.problem));
  }
  const setAside = manifest.setAside.map(({ file, reason }) =>
    toDamage(file, `it was set aside, because it is ${reason}`),
  );
  return { ...contentOf(manifest), damages, setAside };
}

function toDamage(file: string, problem: string): Damage {
  return { file: `${PARTS_DIRECTORY}/${file}`, place: '', problem };
}
