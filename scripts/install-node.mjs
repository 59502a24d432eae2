// Installs another version or architecture of Node from npm, for tests. As a dependency of the project, its `.bin/node` would
// replace the project's Node in every npm script; so each one has a directory of its own in node_modules/.cache.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runNpm } from './npm.mjs';

const cacheDirectory = join(import.meta.dirname, '..', 'node_modules', '.cache', 'dendro');

/** Returns the path of Node for Linux on `arch` (x64 or arm64). */
export function installNode(arch, version) {
  const nodePackage = `node-linux-${arch}`;
  const directory = join(cacheDirectory, `node-${version}-${arch}`);
  const node = join(directory, 'node_modules', nodePackage, 'bin', 'node');
  if (existsSync(node)) return node;
  mkdirSync(directory, { recursive: true });
  const options = ['--prefix', directory, '--no-save', '--no-package-lock', '--ignore-scripts', '--force'];
  runNpm(['install', ...options, `${nodePackage}@${version}`]);
  return node;
}
