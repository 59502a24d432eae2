/** Returns the path of Node for Linux. */
export function installNode(arch: 'x64' | 'arm64', version: string): string;
