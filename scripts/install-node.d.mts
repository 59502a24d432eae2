/** Returns the path of Node for Linux, or undefined if npm could not install it. */
export function installNode(arch: 'x64' | 'arm64', version: string): string | undefined;
