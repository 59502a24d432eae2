export function runNpm(args: readonly string[], directory?: string): string;
