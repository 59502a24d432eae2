// A model of a disk: what is durable, and what a power cut may lose. Built from recorded operations. A file's data is durable after
// its fsync; an entry of a directory (create, rename, unlink) after the fsync of the directory. Everything else may survive or not.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Operation } from './operation-log.ts';

/** A change of a file's data that is not durable yet. */
export type DataChange =
  | { readonly type: 'write'; readonly offset: number; readonly data: Buffer }
  | { readonly type: 'truncate'; readonly size: number };

/** A change of a directory's entries that is not durable yet. */
export interface EntryChange {
  /** The directories whose fsync makes it durable. */
  readonly directory: string;
  readonly apply: (entries: Map<string, Entry>) => void;
}

export type Entry = FileNode | 'directory';

/** The content of a file. */
export class Content {
  #bytes: Buffer;
  size: number;

  constructor(bytes: Uint8Array = Buffer.alloc(0)) {
    this.#bytes = Buffer.from(bytes);
    this.size = bytes.length;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.size);
  }

  apply(change: DataChange): void {
    if (change.type === 'truncate') {
      this.resize(change.size);
      return;
    }
    const end = change.offset + change.data.length;
    if (end > this.size) this.resize(end);
    change.data.copy(this.#bytes, change.offset);
  }

  /** New bytes are zero. */
  resize(size: number): void {
    if (size > this.#bytes.length) {
      const grown = Buffer.alloc(Math.max(size, this.#bytes.length * 2));
      this.bytes.copy(grown);
      this.#bytes = grown;
    } else if (size > this.size) this.#bytes.fill(0, this.size, size);
    this.size = size;
  }
}

let createdNodes = 0;

export class FileNode {
  readonly id = ++createdNodes;
  readonly durable: Content;
  readonly pending: DataChange[] = [];
  /** How often the durable content has changed. */
  version = 0;

  constructor(content: Uint8Array = Buffer.alloc(0)) {
    this.durable = new Content(content);
  }

  sync(): void {
    if (this.pending.length === 0) return;
    for (const change of this.pending.splice(0)) this.durable.apply(change);
    this.version++;
  }
}

export class DiskModel {
  readonly root: string;
  /** The entries as the running processes see them. */
  readonly #entries: Map<string, Entry>;
  readonly durableEntries: Map<string, Entry>;
  readonly pendingEntries: EntryChange[] = [];
  /** By the number of the inode, which the system reuses after a deletion. */
  readonly #nodes = new Map<number, FileNode>();

  /** All of the files are durable. */
  constructor({ root, files }: DirectoryImage) {
    this.root = root;
    this.#entries = new Map([[root, 'directory']]);
    for (const { path, inode, content } of files) {
      const node = content === undefined ? 'directory' : new FileNode(Buffer.from(content, 'base64'));
      this.#entries.set(path, node);
      if (node !== 'directory') this.#nodes.set(inode, node);
    }
    this.durableEntries = new Map(this.#entries);
  }

  /** All files with their present content. */
  *files(): Generator<readonly [path: string, content: Buffer]> {
    for (const [path, entry] of this.#entries)
      if (entry !== 'directory') {
        const content = new Content(entry.durable.bytes);
        for (const change of entry.pending) content.apply(change);
        yield [path, content.bytes];
      }
  }

  apply(operation: Operation): void {
    switch (operation.type) {
      case 'create': {
        const node = new FileNode();
        this.#nodes.set(operation.inode, node);
        this.#change(operation.path, entries => entries.set(operation.path, node));
        break;
      }
      case 'write':
      case 'truncate':
        this.#nodes.get(operation.inode)?.pending.push(operation);
        break;
      case 'sync':
        this.#nodes.get(operation.inode)?.sync();
        break;
      case 'sync directory':
        this.#syncDirectory(operation.path);
        break;
      case 'mkdir':
        this.#change(operation.path, entries => entries.set(operation.path, 'directory'));
        break;
      case 'unlink':
      case 'rmdir':
        this.#change(operation.path, entries => entries.delete(operation.path));
        break;
      case 'rename':
      case 'link':
        this.#move(operation.type, operation.path, operation.to);
        break;
      case 'marker':
    }
  }

  #move(type: 'rename' | 'link', from: string, to: string): void {
    const entry = this.#entries.get(from);
    if (entry === undefined) throw new Error(`${type} of an unknown file: ${from}`);
    this.#change(to, entries => {
      if (type === 'rename') entries.delete(from);
      entries.set(to, entry);
    });
  }

  #change(path: string, apply: (entries: Map<string, Entry>) => unknown): void {
    apply(this.#entries);
    this.pendingEntries.push({ directory: dirname(path), apply: entries => void apply(entries) });
  }

  #syncDirectory(path: string): void {
    const later = this.pendingEntries.splice(0).filter(change => {
      if (change.directory !== path) return true;
      change.apply(this.durableEntries);
      return false;
    });
    this.pendingEntries.push(...later);
  }
}

/** The files below a directory, as JSON. */
export interface DirectoryImage {
  readonly root: string;
  /** `content` is in base64; a directory has none. */
  readonly files: readonly { readonly path: string; readonly inode: number; readonly content?: string }[];
}

export function readDirectory(root: string): DirectoryImage {
  const items = readdirSync(root, { recursive: true, withFileTypes: true });
  const files = items.map(item => {
    const path = join(item.parentPath, item.name);
    const inode = statSync(path).ino;
    return item.isDirectory() ? { path, inode } : { path, inode, content: readFileSync(path, 'base64') };
  });
  return { root, files };
}

/** What a power cut leaves: the entries, and the content of each file. */
export interface CrashState {
  /** Equal for equal states of the same model. */
  readonly key: string;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly contentOf: (node: FileNode) => Buffer;
}

/** Writes a state to an empty directory. Files whose directory did not survive are gone, too. */
export function writeState(root: string, { entries, contentOf }: CrashState, target: string): void {
  for (const path of [...entries.keys()].sort()) {
    const entry = entries.get(path);
    const to = join(target, path.slice(root.length));
    if (path === root || entry === undefined || !isReachable(root, entries, path)) continue;
    if (entry === 'directory') mkdirSync(to);
    else writeFileSync(to, contentOf(entry), { mode: 0o600 });
  }
}

function isReachable(root: string, entries: ReadonlyMap<string, Entry>, path: string): boolean {
  for (let parent = dirname(path); parent !== root; parent = dirname(parent))
    if (entries.get(parent) !== 'directory') return false;
  return true;
}
