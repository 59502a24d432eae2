// Replaces methods of all open files, to count, delay or fail what the file system does.
import { type FileHandle, open } from 'node:fs/promises';

type Methods = Pick<FileHandle, 'datasync' | 'truncate'>;

/** Returns a function that restores the methods. */
export async function replaceFileMethods(
  create: (original: Methods) => Partial<Methods> & ThisType<FileHandle>,
): Promise<() => void> {
  const handle = await open('/dev/null');
  const prototype = Object.getPrototypeOf(handle) as Methods;
  await handle.close();
  const { datasync, truncate } = prototype;
  Object.assign(prototype, create({ datasync, truncate }));
  return () => void Object.assign(prototype, { datasync, truncate });
}
