// npm run test:crash: simulates power cuts and failing file operations for some minutes, and prints what it found.
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { CheckerPool } from './checker-pool.ts';
import { type FailureResult, failOperations, parseFailure } from './fail-operations.ts';
import { loadRecording } from './recording.ts';
import { replayCrash, type SimulationResult, simulate } from './simulate.ts';

const USAGE = `Usage: npm run test:crash -- [--minutes N] [--seed S] [--json]
       npm run test:crash -- --replay DIR --point P --variant V
       npm run test:crash -- --fail PROCESS:OPERATION:ERROR

  --minutes N   how long to run (default: 10)
  --seed S      the seed of all random choices (default: random)
  --json        print the summary as one line of JSON on standard output
  --replay DIR  check one crash state of a saved recording again, and keep its files
  --fail …      let one file operation fail, such as server:17:EIO`;

const CHECKERS = 2;
/** The share of the time for power cuts. The rest is for failing operations. */
const CRASH_SHARE = 0.8;

/** Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      json: { type: 'boolean', default: false },
      replay: { type: 'string' },
      point: { type: 'string', default: '0' },
      variant: { type: 'string', default: '0' },
      fail: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (values.help || !(minutes > 0) || !Number.isInteger(seed)) {
    process.stdout.write(`${USAGE}\n`);
    return values.help ? 0 : 2;
  }
  if (values.replay !== undefined)
    return replay(values.replay, { point: Number(values.point), variant: Number(values.variant) });
  const print = (line: string) => process.stderr.write(`${line}\n`);
  print(`seed ${seed}`);
  const pool = await CheckerPool.start(CHECKERS);
  try {
    const seconds = minutes * 60;
    if (values.fail !== undefined) {
      const only = parseFailure(values.fail);
      return (await failOperations({ seed, seconds, only, print }, pool)).violations.length === 0 ? 0 : 1;
    }
    const crashes = await simulate({ seed, seconds: seconds * CRASH_SHARE, print }, pool);
    if (crashes === undefined) {
      print('THE CRASH SIMULATOR DID NOT RUN: it needs Linux and a C compiler');
      return 0;
    }
    const failures = await failOperations({ seed, seconds: seconds * (1 - CRASH_SHARE), print }, pool);
    process.stdout.write(values.json ? toJson(crashes, failures) : describe(crashes, failures));
    const violations = [...crashes.violations, ...failures.violations];
    reportFailures(violations);
    return violations.length === 0 ? 0 : 1;
  } finally {
    pool.close();
  }
}

/** `npm run test:full` prints this file again at its end. */
function reportFailures(violations: readonly string[]): void {
  const file = process.env['DENDRO_FAILED_TESTS'];
  if (file) for (const violation of violations) appendFileSync(file, `FAILED ${violation}\n`);
}

function describe(crashes: SimulationResult, failures: FailureResult): string {
  const { seed, operations, states, programStates, refused, violations } = crashes;
  return `seed ${seed}
power cuts: ${states} crash states of ${operations} file operations, ${programStates} of them with the real program; ${crashes.lost} with lost records, ${crashes.duplicated} with duplicated records, ${refused} refused with a clear line, ${violations.length} violations
failing operations: ${failures.runs} runs, ${failures.operations.size} different operations; ${failures.lost} with lost records, ${failures.duplicated} with duplicated records, ${failures.violations.length} violations
`;
}

/** One line. The fault table reads the key `powerCut`. */
function toJson(crashes: SimulationResult, failures: FailureResult): string {
  const failingOperations = { ...failures, operations: failures.operations.size };
  return `${JSON.stringify({ powerCut: crashes, failingOperations })}\n`;
}

async function replay(directory: string, at: { point: number; variant: number }): Promise<number> {
  const recording = loadRecording(directory);
  const { directory: state, problems } = await replayCrash(recording, at);
  const operations = recording.operations.slice(Math.max(0, at.point - 15), at.point + 5);
  for (const [index, { operation, path }] of operations.entries()) {
    const number = Math.max(0, at.point - 15) + index;
    const text = operation.type === 'marker' ? operation.text : path;
    const size = operation.type === 'write' ? ` ${operation.data.length} bytes at ${operation.offset}` : '';
    process.stdout.write(`${number === at.point ? '>' : ' '} ${number} ${operation.type} ${text}${size}\n`);
  }
  process.stdout.write(`files of the state: ${state}\n${problems.join('\n') || 'no problem'}\n`);
  return problems.length === 0 ? 0 : 1;
}
