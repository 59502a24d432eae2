// Creates the base images of deploy/Dockerfile without a container registry: Debian from its packages, Node from npm. buildah
// works without a container engine; `chroot` and `vfs` need no kernel feature that a build machine may lack.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { installNode } from '../../scripts/install-node.mjs';
import { runNpm } from '../../scripts/npm.mjs';

const DEBIAN = 'docker.io/library/debian:bookworm-slim';
const NODE = 'docker.io/library/node:20-bookworm-slim';
const NODE_VERSION = '20.20.2';
const NPM_VERSION = '10.9.4';
/** Where the image for builds expects npm's cache. With that of this machine, a build hardly needs the registry. */
export const NPM_CACHE = '/tmp/packages';
/** The official slim images have no such files either. */
const NOT_IN_SLIM = ['usr/share/doc', 'usr/share/man', 'usr/share/info', 'usr/share/locale'];

/** Runs buildah with a storage of its own below `directory`. Returns standard output. */
export type Buildah = (...args: string[]) => string;

export function createBuildah(directory: string): Buildah {
  const options = ['--root', join(directory, 'storage'), '--runroot', join(directory, 'run')];
  const env = { ...process.env, STORAGE_DRIVER: 'vfs', BUILDAH_ISOLATION: 'chroot' };
  return (...args) => run('buildah', [...options, ...args], env);
}

export function createBaseImages(buildah: Buildah, directory: string): void {
  const root = join(directory, 'debian');
  run('debootstrap', ['--variant=minbase', 'bookworm', root, 'http://deb.debian.org/debian']);
  for (const path of [...NOT_IN_SLIM, 'var/cache/apt/archives', 'var/lib/apt/lists']) {
    rmSync(join(root, path), { recursive: true, force: true });
    mkdirSync(join(root, path));
  }
  const container = buildah('from', 'scratch');
  buildah('add', '--quiet', container, root, '/');
  buildah('commit', '--quiet', container, DEBIAN);
  rmSync(root, { recursive: true });
  addNode(buildah, container, directory);
  buildah('commit', '--quiet', '--rm', container, NODE);
}

function addNode(buildah: Buildah, container: string, directory: string): void {
  const node = installNode(process.arch === 'arm64' ? 'arm64' : 'x64', NODE_VERSION);
  const npm = join(directory, 'npm');
  runNpm(['install', '--prefix', npm, '--no-save', `npm@${NPM_VERSION}`]);
  buildah('add', '--quiet', container, node, '/usr/local/bin/node');
  buildah('add', '--quiet', container, join(npm, 'node_modules', 'npm'), '/usr/local/lib/node_modules/npm');
  const link = 'ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm';
  buildah(
    'run',
    container,
    '--',
    'sh',
    '-c',
    `${link}; ${link.replaceAll('npm-cli', 'npx-cli').replace(/npm$/, 'npx')}`,
  );
  const npmConfig = ['--env', `npm_config_cache=${NPM_CACHE}`, '--env', 'npm_config_prefer_offline=true'];
  buildah('config', ...npmConfig, container);
  const certificates = process.env['NODE_EXTRA_CA_CERTS'];
  if (certificates === undefined) return;
  // npm has to trust what this machine trusts.
  buildah('add', '--quiet', container, certificates, '/usr/local/share/extra-ca.crt');
  buildah('config', '--env', 'NODE_EXTRA_CA_CERTS=/usr/local/share/extra-ca.crt', container);
}

/** Throws with the output if the program fails. */
function run(program: string, args: readonly string[], env = process.env): string {
  try {
    const stdio = ['ignore', 'pipe', 'pipe'] as const;
    return execFileSync(program, args, {
      encoding: 'utf8',
      stdio: [...stdio],
      env,
      maxBuffer: 2 ** 26,
    }).trim();
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args[0]} failed:\n${`${stdout}\n${stderr}`.slice(-4000)}`);
  }
}
