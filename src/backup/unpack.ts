// Writes the files of a backup into a new directory, durably and with mode 0600. Never writes outside of it.
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createDirectory, syncDirectory } from '../system/files.ts';
import type { TarFile } from '../system/tar.ts';

/** A file name, in at most one directory. Names do not start with a dot. */
const SAFE_PATH = /^(?:[\w-][\w.-]*\/)?[\w-][\w.-]*$/;

/** Returns the paths of the files. `onProgress` gets the bytes written so far. */
export async function unpack(
  files: AsyncIterable<TarFile> | Iterable<TarFile>,
  directory: string,
  onProgress: (bytes: number) => void = () => {},
): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  const directories = new Set([directory]);
  let bytes = 0;
  for await (const file of files) {
    if (!SAFE_PATH.test(file.path))
      throw new Error(`the backup has a file ${JSON.stringify(file.path)}, which is not a valid path`);
    const target = join(directory, file.path);
    createDirectory(dirname(target));
    directories.add(dirname(target));
    const handle = await open(target, 'wx', 0o600); // fails if the path occurs twice
    try {
      for await (const chunk of file.content()) {
        await handle.writeFile(chunk);
        bytes += chunk.length;
        onProgress(bytes);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    paths.add(file.path);
  }
  for (const each of directories) await syncDirectory(each);
  return paths;
}
