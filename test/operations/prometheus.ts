// Debian's Prometheus and promtool, unpacked without installing them: an installed package would start a service.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, unpackPackage } from '../../scripts/debian.mjs';
import { findFreePort } from '../support/process.ts';

const ROOT = join(import.meta.dirname, '../..');
const UNPACKED = join(ROOT, 'node_modules/.cache/dendro/prometheus');

/** Returns the path of `prometheus` or `promtool`. Throws if the package cannot be downloaded. */
export function ensureProgram(name: 'prometheus' | 'promtool'): string {
  const installed = findProgram(name);
  if (installed !== undefined) return installed;
  const unpacked = join(UNPACKED, 'usr/bin', name);
  const problem = existsSync(unpacked) ? undefined : unpackPackage('prometheus', UNPACKED);
  if (problem !== undefined)
    throw new Error(`${name} is missing; on Debian: sudo apt-get install prometheus (${problem})`);
  return unpacked;
}

/** Runs promtool in the repository's root. */
export function runPromtool(args: readonly string[], input = ''): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(ensureProgram('promtool'), args, {
    cwd: ROOT,
    input,
    encoding: 'utf8',
  });
  return { status, output: `${stdout}${stderr}` };
}

export interface PrometheusProcess {
  /** Sends a GET to the HTTP API and returns `data` of the response. */
  get(path: string, parameters?: Readonly<Record<string, string>>): Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts Prometheus with this configuration and waits until it is ready. */
export async function startPrometheus(directory: string, configuration: string): Promise<PrometheusProcess> {
  const file = join(directory, 'prometheus.yml');
  writeFileSync(file, configuration);
  const address = `127.0.0.1:${await findFreePort()}`;
  const child: ChildProcess = spawn(
    ensureProgram('prometheus'),
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, 'tsdb')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const stop = async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  };
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`prometheus exited with ${child.exitCode}`);
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  return {
    async get(path, parameters = {}) {
      const response = await fetch(`http://${address}${path}?${new URLSearchParams(parameters)}`);
      const body = (await response.json()) as { status: string; data: unknown; error?: string };
      if (body.status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${body.error}`);
      return body.data;
    },
    stop,
  };
}
