// Files that survive a crash: whole and on the disk, or as they were before.
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** One at a time for each file. */
export async function writeDurably(file: string, content: Uint8Array | string): Promise<void> {
  const draft = `${file}.new`;
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(content);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
  await syncFolder(dirname(file));
}

/** A new file is durable once its folder is. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
