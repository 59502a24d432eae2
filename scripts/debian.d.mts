/** Returns the programs that are still missing. */
export function ensurePrograms(
  packagesByProgram: Readonly<Record<string, string | readonly string[]>>,
): string[];
export function findProgram(name: string): string | undefined;
