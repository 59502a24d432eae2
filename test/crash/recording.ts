// One recording: the workload runs in several processes, one after the other, on one directory, and the shim records it. A process
// stops cleanly, or is killed before a file operation.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Random } from '../../src/demo/random.ts';
import { type DirectoryImage, DiskModel, readDirectory } from './disk-model.ts';
import type { FileShim } from './file-shim.ts';
import { Ledger, type LedgerContent, type Marker } from './ledger.ts';
import { type LoggedOperation, readOperationLog } from './operation-log.ts';
import type { WorkloadOptions } from './workload.ts';

export interface Recording {
  readonly seed: number;
  /** The directory before the first operation. */
  readonly start: DirectoryImage;
  /** What the directory had to contain then. */
  readonly ledger: LedgerContent;
  readonly operations: readonly LoggedOperation[];
}

const CHILD = join(import.meta.dirname, 'workload-process.mjs');
const PROCESSES = 3;
/** A killed process gets this many file operations at most. */
const MAX_OPERATIONS_BEFORE_KILL = 800;

/** Records a workload on `root`, which has the content of `ledger`. */
export async function record(
  shim: FileShim,
  root: string,
  ledger: LedgerContent,
  options: { readonly seed: number; readonly steps: number },
): Promise<Recording> {
  const random = new Random(options.seed);
  const start = readDirectory(root);
  shim.clear();
  const current = new Ledger(ledger);
  let read = 0;
  for (let process = 0; process < PROCESSES; process++) {
    const isKilled = random.chance(0.6);
    const killBefore = isKilled ? 1 + Math.floor(random.next() ** 2 * MAX_OPERATIONS_BEFORE_KILL) : 0;
    const seed = Math.floor(random.next() * 2 ** 32);
    await runProcess(shim, {
      ...{ dataDirectory: join(root, 'data'), seed, killBefore, ledger: current.content },
      steps: options.steps,
    });
    const operations = shim.operations();
    for (const { operation } of operations.slice(read))
      if (operation.type === 'marker') current.apply(JSON.parse(operation.text) as Marker);
    read = operations.length;
  }
  const recording = { seed: options.seed, start, ledger, operations: shim.operations() };
  requireSameFiles(recording, root);
  return recording;
}

/** A process that takes longer is killed, which is one more crash to recover from. */
const MAX_PROCESS_MS = 20_000;

async function runProcess({ env }: FileShim, options: WorkloadOptions): Promise<void> {
  const file = join(options.dataDirectory, '../../workload.json');
  writeFileSync(file, JSON.stringify(options));
  const child = spawn(process.execPath, [CHILD, file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text;
  });
  // A stop that waits for time to pass never ends, because the workload skips time itself.
  const timeout = setTimeout(() => child.kill('SIGKILL'), MAX_PROCESS_MS);
  const [code, signal] = await once(child, 'close');
  clearTimeout(timeout);
  if (code !== 0 && signal !== 'SIGKILL')
    throw new Error(`the workload failed with ${code ?? signal}: ${stderr}`);
}

/** The model must know every operation: all of them together give the files that the processes left. */
function requireSameFiles({ start, operations }: Recording, root: string): void {
  const model = new DiskModel(start);
  for (const { operation, error } of operations) if (error === 0) model.apply(operation);
  const expected = new Map(model.files());
  for (const { path, content } of readDirectory(root).files) {
    if (content === undefined) continue;
    if (!expected.get(path)?.equals(Buffer.from(content, 'base64')))
      throw new Error(`the shim missed an operation: ${path} differs from the recorded operations`);
    expected.delete(path);
  }
  for (const path of expected.keys()) throw new Error(`the shim missed that ${path} was deleted`);
}

/** Saves a recording, so that its crash states can be built again. */
export function saveRecording(directory: string, { operations: _, ...rest }: Recording, log: Buffer): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'recording.json'), JSON.stringify(rest));
  writeFileSync(join(directory, 'operations'), log);
}

export function loadRecording(directory: string): Recording {
  const rest = JSON.parse(readFileSync(join(directory, 'recording.json'), 'utf8')) as Omit<
    Recording,
    'operations'
  >;
  return { ...rest, operations: [...readOperationLog(readFileSync(join(directory, 'operations')))] };
}
