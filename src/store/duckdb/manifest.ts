// manifest.json says which parts the store has and up to which sequence number each kind is stored. It is replaced atomically: this
// commits a flush, a compaction and every other change. An operator can replace a damaged one by its copy, manifest.copy.json. Its
// format belongs to the format of the data directory (system/data-directory.ts).
import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { OperatorError } from '../../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { writeFileDurably } from '../../system/files.ts';
import type { StoreContent } from '../store.ts';

export const MANIFEST_FILE = 'manifest.json';
const MANIFEST_COPY_FILE = 'manifest.copy.json';
/** In the data directory. */
export const PARTS_DIRECTORY = 'parts';
/** The name of a part's file: its kind and its number. */
export const PART_FILE = /^([a-z_]+)-(\d{6,})\.duckdb$/;

const COUNT = v.pipe(v.number(), v.integer(), v.minValue(0));
/** Unix microseconds. */
const MICROS = v.pipe(
  v.number(),
  v.integer(),
  v.transform(number => BigInt(number)),
);
const KIND = v.picklist(LOG_KINDS);

const PART = {
  file: v.pipe(v.string(), v.regex(PART_FILE)),
  kind: KIND,
  records: COUNT,
  /** How many sorted runs its records form. */
  runs: COUNT,
  /** The oldest and the newest timestamp. */
  since: MICROS,
  until: MICROS,
  /** The size of its messages and metadata before compression, and of those in large records (rewriter.ts). */
  textBytes: COUNT,
  largeTextBytes: COUNT,
  /** Whether it has a text filter. Undefined: no, because an earlier release wrote it. */
  hasTextFilter: v.optional(v.boolean()),
  /** Size and checksum of the file. */
  bytes: COUNT,
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  /** How many entries of `erased` are older than the moment at which it was set aside. Undefined: it never was. */
  erasedBefore: v.optional(COUNT),
};
const SET_ASIDE_PART = { ...PART, reason: v.picklist(['missing', 'damaged']) };

const SCHEMA = v.object({
  /** The number of the next part. A number is never used twice. */
  nextPart: COUNT,
  /** For each kind, records with a lower sequence number are stored. */
  storedUpTo: v.record(KIND, COUNT),
  /** Records with an earlier timestamp have expired. Queries do not return them, even if a part still has them. */
  expiredBefore: v.optional(MICROS),
  parts: v.array(v.object(PART)),
  /** Parts that were removed. Their files may not be deleted yet. */
  removed: v.optional(v.array(v.pipe(v.string(), v.regex(PART_FILE))), []),
  /** Parts that are damaged or missing. Queries do not read them. */
  setAside: v.array(v.object(SET_ASIDE_PART)),
  /** What `Store.append` has loaded, so that the same content is not loaded twice. */
  loads: v.array(
    v.object({
      source: v.string(),
      digest: v.string(),
      fileBytes: COUNT,
      records: COUNT,
      loadedAt: MICROS,
      /** How many entries of `erased` are older than the load. Undefined: none. */
      erasedBefore: v.optional(COUNT),
    }),
  ),
  /** What was erased since the first load, or while parts were set aside, the oldest first. */
  erased: v.optional(
    v.array(v.object({ projectHash: v.string(), beforeMicros: v.optional(v.number()) })),
    [],
  ),
});

export type Manifest = v.InferOutput<typeof SCHEMA>;
export type PartEntry = Manifest['parts'][number];
export type SetAsideEntry = Manifest['setAside'][number];
export type LoadEntry = Manifest['loads'][number];

export function emptyManifest(): Manifest {
  return {
    nextPart: 1,
    storedUpTo: {},
    parts: [],
    removed: [],
    setAside: [],
    loads: [],
    erased: [],
  };
}

/** Returns undefined if there is none, and no part. Throws an OperatorError if it cannot be used, or if only parts exist. */
export function readManifest(dataDirectory: string): Manifest | undefined {
  const file = join(dataDirectory, MANIFEST_FILE);
  try {
    return parseManifest(readFileSync(file, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw cannotUse(dataDirectory, `cannot read ${file}: ${(error as Error).message}`);
  }
  const part = findPart(dataDirectory);
  if (part === undefined) return undefined;
  throw cannotUse(dataDirectory, `${file} does not exist, although there are parts, such as ${part}`);
}

/** The name of any part, whether the manifest names it or not. */
export function findPart(dataDirectory: string): string | undefined {
  const directory = join(dataDirectory, PARTS_DIRECTORY);
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  return readdirSync(directory).find(name => PART_FILE.test(name));
}

export function parseManifest(text: string): Manifest {
  const { sha256, ...content } = (JSON.parse(text) ?? {}) as Record<string, unknown>;
  if (sha256 !== checksumOf(content)) throw new Error('its content differs from what was written');
  const parsed = v.safeParse(SCHEMA, content);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw new Error(`${v.getDotPath(issue) ?? 'it'}: ${issue.message}`);
}

/** The error of a data directory whose manifest is missing or unusable. */
export function cannotUse(dataDirectory: string, problem: string): OperatorError {
  const copy = join(dataDirectory, MANIFEST_COPY_FILE);
  const hint = existsSync(copy)
    ? `copy ${copy} to ${join(dataDirectory, MANIFEST_FILE)} (it may lack the last change), or restore a backup`
    : 'restore a backup';
  return new OperatorError(`${problem}; nothing was changed. To continue, ${hint}`);
}

/** Names are part of the on-disk format. */
export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify({ sha256: checksumOf(manifest), ...manifest }, toJson, 1)}\n`;
}

/** A changed byte must not be taken for another sequence number: records would be lost or duplicated. */
function checksumOf(content: object): string {
  return hash('sha256', JSON.stringify(content, toJson));
}

function toJson(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}

/** The manifest was replaced, but it is unknown whether the change survives a power cut. */
export class UnsyncedManifestError extends OperatorError {}

/** If it throws anything but an UnsyncedManifestError, the old manifest is unchanged. */
export async function writeManifest(dataDirectory: string, manifest: Manifest): Promise<void> {
  let isRenaming = false;
  const beforeRename = () => {
    isRenaming = true;
  };
  try {
    await writeFileDurably(join(dataDirectory, MANIFEST_FILE), formatManifest(manifest), { beforeRename });
  } catch (error) {
    if (!isRenaming) throw error;
    throw new UnsyncedManifestError(`cannot replace ${MANIFEST_FILE} durably: ${(error as Error).message}`);
  }
}

export async function writeManifestCopy(dataDirectory: string, manifest: Manifest): Promise<void> {
  await writeFileDurably(join(dataDirectory, MANIFEST_COPY_FILE), formatManifest(manifest));
}

/** What the parts contain. */
export function contentOf(manifest: Manifest): StoreContent {
  const count = (kind: LogKind) =>
    manifest.parts.reduce((sum, part) => sum + (part.kind === kind ? part.records : 0), 0);
  return {
    records: new Map(LOG_KINDS.map(kind => [kind, count(kind)])),
    durableUpTo: kind => manifest.storedUpTo[kind] ?? 0,
  };
}
