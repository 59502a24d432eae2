// The container image: builds the unchanged Dockerfile, and runs the image's command as its user on its root file system, which is
// read-only apart from the data volume.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { fetchResponse } from '../support/app.ts';
import { sendLogs } from '../support/logs.ts';
import { createTempDirectory, findFreePort, PROCESS_API_KEY, startServer } from '../support/process.ts';
import { type Buildah, createBaseImages, createBuildah, NPM_CACHE } from './base-images.ts';

const ROOT = join(import.meta.dirname, '../..');

interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Volumes: Readonly<Record<string, unknown>>;
  readonly ExposedPorts: Readonly<Record<string, unknown>>;
  readonly Healthcheck: { readonly Test: readonly [string, string] };
}

/** In CI a missing program or permission is a failure. */
function findObstacle(): string | undefined {
  if (process.getuid?.() !== 0) return 'building the image needs root';
  const missing = ensurePrograms({ buildah: 'buildah', debootstrap: 'debootstrap' });
  return missing.length === 0 ? undefined : `missing: ${missing.join(', ')}`;
}

const obstacle = findObstacle();
if (obstacle !== undefined && process.env['CI'] === undefined)
  process.stderr.write(`SKIPPED: the container image is not tested: ${obstacle}\n`);

describe.skipIf(obstacle !== undefined && process.env['CI'] === undefined)('the container image', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let buildah: Buildah;
  let config: ImageConfig;
  let rootDirectory: string;
  let data: string;

  beforeAll(() => {
    expect(obstacle).toBeUndefined();
    directory = createTempDirectory();
    buildah = createBuildah(directory.path);
    createBaseImages(buildah, directory.path);
    const file = join(ROOT, 'deploy', 'Dockerfile');
    const npmCache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
    const options = ['--pull-never', '--format', 'docker', '--volume', `${npmCache}:${NPM_CACHE}`];
    buildah('build', ...options, '--file', file, '--tag', 'dendro', ROOT);
    const { Docker } = JSON.parse(buildah('inspect', '--type', 'image', 'dendro'));
    config = Docker.config;
    process.stdout.write(buildah('images', '--format', 'image {{.Name}}: {{.Size}}').concat('\n'));
    rootDirectory = buildah('mount', buildah('from', '--pull-never', 'dendro'));
    data = join(directory.path, 'volume');
    mkdirSync(data);
    chownSync(data, 10_001, 10_001);
  });
  afterAll(() => {
    if (rootDirectory !== undefined) buildah('rm', '--all');
    directory?.remove();
  });

  test('has a user that is not root, a volume, two ports and a health check', () => {
    expect(config).toMatchObject({
      User: '10001:10001',
      Entrypoint: ['dendro'],
      Cmd: ['serve'],
      Volumes: { '/var/lib/dendro': {} },
      ExposedPorts: { '4000/tcp': {}, '4001/tcp': {} },
      Healthcheck: { Test: ['CMD-SHELL', expect.stringContaining('curl ')] },
    });
    expect(config.Env).toEqual(
      expect.arrayContaining([
        'DENDRO_HOST=0.0.0.0',
        'DENDRO_INTERNAL_HOST=0.0.0.0',
        'DENDRO_DATA=/var/lib/dendro',
      ]),
    );
  });

  test('contains no build tools, sources or caches', () => {
    const listed = execFileSync('find', ['.', '-xdev'], {
      cwd: rootDirectory,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    const unwanted = /\/(npm|npx|tsc|vitest|typescript|\.npm|src\/app\.ts)$|\/var\/lib\/apt\/lists\/.+/;
    expect(listed.split('\n').filter(path => unwanted.test(path))).toEqual([]);
    expect(statSync(join(rootDirectory, 'var/lib/dendro'))).toMatchObject({ uid: 10_001, gid: 10_001 });
  });

  /** Runs a command as the image's user in its own mount namespace, with the root file system read-only. */
  const inImage = (
    env: Readonly<Record<string, string>>,
    command: readonly string[],
  ): [string, ...string[]] => {
    const variables = [...config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
    const script = `
      set -e
      mount --bind "$ROOT" "$ROOT"
      mount -o remount,ro,bind "$ROOT"
      if touch "$ROOT/probe" 2>/dev/null; then echo "the root file system is writable" >&2; exit 99; fi
      mount --bind "$VOLUME" "$ROOT/var/lib/dendro"
      mount -t proc proc "$ROOT/proc"
      mount --bind /dev "$ROOT/dev"
      exec chroot --userspec=${config.User} "$ROOT" env -i "$@"`;
    const places = [`ROOT=${rootDirectory}`, `VOLUME=${data}`];
    return ['env', ...places, 'unshare', '--mount', 'sh', '-c', script, 'sh', ...variables, ...command];
  };

  test('serves on a read-only root file system, passes its health check, and stops on SIGTERM', async () => {
    const env = {
      DENDRO_API_KEY: PROCESS_API_KEY,
      DENDRO_HOST: '127.0.0.1', // the test shares the network of the machine
      DENDRO_INTERNAL_HOST: '127.0.0.1',
      DENDRO_PORT: String(await findFreePort()),
    };
    const health = () => {
      const [program, ...args] = inImage(env, ['sh', '-c', config.Healthcheck.Test[1]]);
      return spawnSync(program, args).status;
    };
    expect(health()).not.toBe(0);
    const ports = ['--port', env.DENDRO_PORT, '--internal-port', '0'];
    // The same command as CMD, which startServer passes: serve.
    const server = await startServer(ports, { command: inImage(env, config.Entrypoint) });
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\t10001\t10001\t10001\t10001$/m);
    expect(status).toMatch(/^Gid:\t10001\t10001\t10001\t10001$/m);
    expect(health()).toBe(0);
    const records = [{ id: 'one', project: 'a', message: 'from a container' }];
    expect((await sendLogs(server.internalUrl, records, { token: PROCESS_API_KEY })).accepted).toBe(1);
    const url = `${server.url}/api/endpoints/query/logs.all?project=a`;
    const read = async () => (await fetchResponse(url, { headers: { 'X-API-KEY': PROCESS_API_KEY } })).rows;
    await expect.poll(read).toMatchObject([{ id: 'one', event_message: 'from a container' }]);
    server.signal('SIGTERM');
    expect((await server.ended).code).toBe(0);
    expect(statSync(join(data, 'dendro.duckdb')).uid).toBe(10_001);
  });
});
