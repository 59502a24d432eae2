// Installs another version or architecture of Node from npm, for tests. As a dependency of the project, its `.bin/node` would
// replace the project's Node in every npm script; so each one has a directory of its own in node_modules/.cache.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const cacheDirectory = join(import.meta.dirname, '..', 'node_modules', '.cache', 'dendro');

/** Returns the path of Node for Linux on `arch` (x64 or arm64), or undefined if npm could not install it. */
export function installNode(arch, version) {
  const nodePackage = `node-linux-${arch}`;
  const directory = join(cacheDirectory, `node-${version}-${arch}`);
  const node = join(directory, 'node_modules', nodePackage, 'bin', 'node');
  if (existsSync(node)) return node;
  mkdirSync(directory, { recursive: true });
  const args = [
    ...['install', '--prefix', directory, '--no-save', '--no-package-lock', '--ignore-scripts', '--force'],
    ...['--no-audit', '--no-fund', `${nodePackage}@${version}`],
  ];
  const { stdout, stderr } = spawnSync('npm', args, { encoding: 'utf8' });
  if (existsSync(node)) return node;
  process.stdout.write(`cannot install ${nodePackage}@${version}\n${stdout}${stderr}`);
  return undefined;
}
