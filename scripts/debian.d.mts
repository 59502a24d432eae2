/**
 * Installs missing programs and returns those that are still missing. A program is a name in PATH or the absolute path of a
 * file.
 */
export function ensurePrograms(
  packagesByProgram: Readonly<Record<string, string | readonly string[]>>,
  options?: { readonly update?: boolean },
): string[];
export function findProgram(name: string): string | undefined;
/** Returns what is wrong, or undefined. */
export function unpackPackage(name: string, directory: string): string | undefined;
