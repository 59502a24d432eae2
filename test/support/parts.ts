// The parts of an embedded store, as its manifest names them.
import type { LogKind } from '../../src/domain/log-columns.ts';
import { type PartEntry, readManifest } from '../../src/store/duckdb/manifest.ts';

/** Oldest first. */
export function listParts(dataDirectory: string, kind: LogKind): readonly PartEntry[] {
  const parts = readManifest(dataDirectory)?.parts.filter(part => part.kind === kind) ?? [];
  return parts.sort((a, b) => Number(a.since - b.since));
}
