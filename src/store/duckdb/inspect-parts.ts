// Reads every part of a store without changing it, and reports what is damaged: each file is compared with the size and the
// checksum in the manifest.
import { join } from 'node:path';
import type { Damage } from '../../domain/damage.ts';
import type { StoreContent } from '../store.ts';
import { contentOf, type Manifest, PARTS_DIRECTORY, readManifest } from './manifest.ts';
import { findPartProblem, findSizeProblem } from './part-file.ts';

export interface InspectOptions {
  readonly dataDirectory: string;
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

/** The caller must hold the lock of the data directory. Throws an OperatorError if the manifest cannot be used. */
export async function inspectParts({
  dataDirectory,
  onProgress = () => {},
}: InspectOptions): Promise<InspectedParts> {
  const manifest = readManifest(dataDirectory);
  if (manifest === undefined) return { records: new Map(), durableUpTo: () => 0, damages: [], setAside: [] };
  const total = manifest.parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const damages: Damage[] = [];
  let read = 0;
  for (const part of manifest.parts) {
    const found = await findPartProblem(join(dataDirectory, PARTS_DIRECTORY), part, bytes => {
      read += bytes;
      onProgress(read, total);
    });
    if (found !== undefined) damages.push(toDamage(part.file, found.problem));
  }
  return { ...contentOf(manifest), damages, setAside: listSetAside(manifest) };
}

/** Compares only the sizes of the files. Throws an OperatorError if the manifest cannot be used. */
export function inspectPartSizes(dataDirectory: string): readonly Damage[] {
  const manifest = readManifest(dataDirectory);
  if (manifest === undefined) return [];
  const damages = listSetAside(manifest);
  for (const part of manifest.parts) {
    const found = findSizeProblem(join(dataDirectory, PARTS_DIRECTORY), part);
    if (found !== undefined) damages.push(toDamage(part.file, found.problem));
  }
  return damages;
}

function listSetAside({ setAside }: Manifest): Damage[] {
  return setAside.map(({ file, reason }) => toDamage(file, `it was set aside, because it is ${reason}`));
}

function toDamage(file: string, problem: string): Damage {
  return { file: `${PARTS_DIRECTORY}/${file}`, place: '', problem };
}
