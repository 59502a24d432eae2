// A file system of a few megabytes in memory that tests fill up. Mounting it needs Linux and root.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly path: string;
  freeBytes(): number;
  /** Writes a file that leaves this many bytes free. */
  fill(leftBytes: number): void;
  /** Leaves no free space, at once: shrinks the file system to its used size. */
  fillAtOnce(): void;
  /** Leaves no free inode: no file can be created. Cannot be undone. */
  useAllInodes(): void;
  /** Undoes `fill` and `fillAtOnce`. */
  free(): void;
  remove(): void;
}

/** Returns undefined if this user or system cannot mount one. */
export function mountSmallDisk(mebibytes: number): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), 'dendro-small-disk-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path]);
  if (status !== 0) {
    rmSync(path, { recursive: true });
    return undefined;
  }
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  };
  const fillers: string[] = [];
  const resize = (size: string) => spawnSync('mount', ['-o', `remount,size=${size}`, path]);
  return {
    path,
    freeBytes,
    fill(leftBytes) {
      const filler = join(path, `filler-${fillers.length}`);
      fillers.push(filler);
      const file = openSync(filler, 'w');
      const block = Buffer.alloc(64 * 1024, 1);
      try {
        for (let left = freeBytes() - leftBytes; left > 0; left -= block.length)
          writeSync(file, block, 0, Math.min(left, block.length));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    },
    fillAtOnce() {
      const { blocks, bfree, bsize } = statfsSync(path);
      resize(`${(blocks - bfree) * bsize}`);
    },
    useAllInodes() {
      const { files, ffree } = statfsSync(path);
      spawnSync('mount', ['-o', `remount,nr_inodes=${files - ffree}`, path]);
    },
    free() {
      resize(`${mebibytes}m`);
      for (const filler of fillers.splice(0)) rmSync(filler);
    },
    remove() {
      const unmounted = spawnSync('umount', [path]);
      if (unmounted.status !== 0) spawnSync('umount', ['-l', path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}
