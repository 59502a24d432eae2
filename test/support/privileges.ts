// Runs code in this process as a user that file permissions apply to: root may read and write every file.
import { chownSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const NOBODY = 65_534;

/** Returns the error of `work`. While it runs, the directory and its files belong to the user of this process, which is not root. */
export async function errorWithoutPrivileges(directory: string, work: () => Promise<void>): Promise<unknown> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) {
    changeOwner(directory, NOBODY);
    process.seteuid?.(NOBODY);
  }
  try {
    return await work().then(
      () => undefined,
      (error: unknown) => error,
    );
  } finally {
    if (isRoot) {
      process.seteuid?.(0);
      changeOwner(directory, 0);
    }
  }
}

function changeOwner(directory: string, owner: number): void {
  const names = readdirSync(directory, { recursive: true }).map(String);
  for (const name of ['', ...names]) chownSync(join(directory, name), owner, owner);
}
