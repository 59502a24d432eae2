// Chooses what survives a power cut: nothing that was not synced, everything, or a part of it. Writes can be torn at the borders of
// sectors or pages, and reordered. Renames are atomic.
import type { Random } from '../../src/demo/random.ts';
import {
  Content,
  type CrashState,
  type DataChange,
  type DiskModel,
  type Entry,
  type FileNode,
} from './disk-model.ts';

/**
 * - lost: nothing survives that was not synced.
 * - kept: everything survives, as after kill -9.
 * - entries: renames, creations and deletions survive, but no data. data: the other way round.
 * - journal: the oldest changes of directories survive, as in a file system with a journal; of each file, its oldest writes.
 * - any: every change survives or not, whatever the others do.
 */
export const CRASH_MODES = ['lost', 'kept', 'entries', 'data', 'journal', 'any'] as const;
export type CrashMode = (typeof CRASH_MODES)[number];

/** Which changes of one file survive: a letter for each, and the torn parts. Also the key of the content. */
interface FileChoice {
  readonly key: string;
  readonly changes: readonly DataChange[];
}

const SECTOR_BYTES = 512;
const PAGE_BYTES = 4096;
const TORN_SHARE = 0.4;

export function chooseCrashState(model: DiskModel, mode: CrashMode, random: Random): CrashState {
  const entries = new Map<string, Entry>(model.durableEntries);
  const survives = chooseEntries(mode, model.pendingEntries.length, random);
  for (const [index, change] of model.pendingEntries.entries()) if (survives(index)) change.apply(entries);
  const choices = new Map<FileNode, FileChoice>();
  const keys: string[] = [];
  for (const [path, entry] of entries) {
    if (entry === 'directory') {
      keys.push(path);
      continue;
    }
    const choice = choices.get(entry) ?? chooseChanges(mode, entry.pending, random);
    choices.set(entry, choice);
    keys.push(`${path} ${entry.id} ${entry.version} ${choice.key}`);
  }
  return {
    key: keys.sort().join('\n'),
    entries,
    contentOf: node => {
      const changes = choices.get(node)?.changes ?? [];
      if (changes.length === 0) return node.durable.bytes;
      const content = new Content(node.durable.bytes);
      for (const change of changes) content.apply(change);
      return content.bytes;
    },
  };
}

function chooseEntries(mode: CrashMode, count: number, random: Random): (index: number) => boolean {
  switch (mode) {
    case 'lost':
    case 'data':
      return () => false;
    case 'kept':
    case 'entries':
      return () => true;
    case 'journal': {
      const survivors = Math.floor(random.next() * (count + 1));
      return index => index < survivors;
    }
    case 'any': {
      const share = random.next();
      return () => random.chance(share);
    }
  }
}

function chooseChanges(mode: CrashMode, pending: readonly DataChange[], random: Random): FileChoice {
  if (mode === 'lost' || mode === 'entries' || pending.length === 0) return { key: '', changes: [] };
  if (mode === 'kept' || mode === 'data') return { key: `${pending.length}`, changes: pending };
  const survivors = Math.floor(random.next() * (pending.length + 1));
  const share = random.next();
  const changes: DataChange[] = [];
  let key = '';
  for (const [index, change] of pending.entries()) {
    const isLast = mode === 'journal' && index === survivors - 1;
    const survives = mode === 'journal' ? index < survivors : random.chance(share);
    const isTorn =
      survives && change.type === 'write' && (mode === 'any' || isLast) && random.chance(TORN_SHARE);
    const parts = isTorn ? tear(change, mode, random) : survives ? [change] : [];
    changes.push(...parts);
    key += isTorn ? describeParts(parts) : survives ? '+' : '-';
  }
  return { key, changes };
}

/** Splits a write at the borders of sectors or pages, and keeps some of them. The file may have its new length without the data. */
function tear(change: DataChange & { type: 'write' }, mode: CrashMode, random: Random): DataChange[] {
  const { offset, data } = change;
  const unit = random.chance(0.5) ? SECTOR_BYTES : PAGE_BYTES;
  const parts: DataChange[] = [];
  const firstBorder = unit - (offset % unit);
  const share = random.next();
  let start = 0;
  for (
    let end = Math.min(firstBorder, data.length);
    start < data.length;
    end = Math.min(end + unit, data.length)
  ) {
    // With a journal, a file grows when its data is on the disk: the first parts survive.
    if (random.chance(share))
      parts.push({ type: 'write', offset: offset + start, data: data.subarray(start, end) });
    else if (mode === 'journal') return parts;
    start = end;
  }
  if (random.chance(0.5)) parts.push({ type: 'write', offset: offset + data.length, data: Buffer.alloc(0) });
  return parts;
}

function describeParts(parts: readonly DataChange[]): string {
  return `(${parts.map(part => (part.type === 'write' ? `${part.offset}:${part.data.length}` : '')).join(',')})`;
}
