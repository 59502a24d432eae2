/** The programs that are still missing. */
export function ensurePrograms(packageOf: Readonly<Record<string, string | readonly string[]>>): string[];
export function findProgram(name: string): string | undefined;
