// The crash simulator (docs/reliability.md). Environment variables: DENDRO_TEST_SEED, DENDRO_CRASH_STATES (how many states),
// DENDRO_CRASH_STATE and DENDRO_CRASH_FAIL (repeats one violation, as its message says).
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import { reportFault, sized } from '../support/fault-report.ts';
import { SEED } from '../support/seed.ts';
import { visitCrashPoints } from './crash-points.ts';
import { FailingRuns, parseFailure } from './fail-operations.ts';
import { createFileShim, type FileShim } from './file-shim.ts';
import { loadRecording, type Recording } from './recording.ts';
import { checkCrashState, Simulator } from './simulate.ts';

const { env } = process;
const STATES = Number(env['DENDRO_CRASH_STATES'] ?? sized(700, 8_000));
const STATES_PER_RECORDING = 350;
const STATES_PER_MUTATION = 10;
const MAX_STATES_PER_MUTATION = 400;
/** Of each process of a recording. */
const STEPS = 12;
const FAILING_RUNS = sized(12, 60);
const OPTIONS = { timeout: 3_600_000 };
const isRepeated = env['DENDRO_CRASH_STATE'] !== undefined || env['DENDRO_CRASH_FAIL'] !== undefined;

let work: string;
let shim: FileShim | undefined;
/** A short recording may write no part that the spool does not have too. */
let longest: Recording | undefined;

beforeAll(() => {
  // In memory, if there is room: states are written and deleted by the hundred. Containers often have 64 MiB.
  const hasRoom = existsSync('/dev/shm') && statfsSync('/dev/shm').blocks > 262_144; // 1 GiB in pages
  work = mkdtempSync(join(hasRoom ? '/dev/shm' : tmpdir(), 'dendro-crash-'));
  shim = createFileShim(join(work, 'root'));
}, 120_000);
afterAll(() => {
  shim?.remove();
  rmSync(work, { recursive: true, force: true });
});

const requireShim = ({ skip }: TestContext): FileShim =>
  shim ?? skip('THE CRASH SIMULATOR DID NOT RUN: it needs Linux and a C compiler');
const print = (line: string) => process.stderr.write(`${line}\n`);
const simulatorIn = (name: string, context: TestContext) => {
  rmSync(join(work, 'root'), { recursive: true, force: true });
  return new Simulator(name === '' ? work : mkdtempSync(join(work, name)), requireShim(context), SEED);
};

test.skipIf(isRepeated)('a power cut loses no acknowledged record', OPTIONS, async context => {
  const simulator = simulatorIn('', context);
  const { findings } = simulator;
  while (findings.states < STATES && findings.violations.length === 0) {
    const recording = await simulator.record(STEPS);
    if (longest === undefined || recording.operations.length > longest.operations.length) longest = recording;
    const before = findings.states;
    await simulator.explore(recording, Math.min(STATES_PER_RECORDING, STATES - before));
    print(
      `recording ${recording.seed}: ${recording.operations.length} operations, ${findings.states - before} states`,
    );
  }
  expect(findings.violations).toEqual([]);
  const { states, refused, lost, duplicated } = findings;
  const remedy = refused === 0 ? '' : `, or prints one line with the remedy (${refused} ×)`;
  const outcome = `every start succeeds${remedy}; 0 violations of the guarantees`;
  reportFault({ fault: 'power cut', runs: states, outcome, lost, duplicated });
});

test
  .skipIf(isRepeated)
  .for(['no syncs of the spool', 'no syncs of parts', 'no syncs of directories'] as const)(
  'the simulator reports lost records if the program makes %s',
  OPTIONS,
  async (mutation, context) => {
    if (longest === undefined) return context.skip('there is no recording');
    const simulator = simulatorIn('mutation-', context);
    const { findings } = simulator;
    while (findings.lost === 0 && findings.states < MAX_STATES_PER_MUTATION)
      await simulator.explore(longest, STATES_PER_MUTATION, mutation);
    expect(findings.lost).toBeGreaterThan(0);
    expect(findings.violations[0]).toContain('to reproduce: DENDRO_CRASH_STATE=');
  },
);

test.skipIf(isRepeated)(
  'a file operation that fails loses no acknowledged record',
  OPTIONS,
  async context => {
    const runs = new FailingRuns(work, requireShim(context));
    await runs.runRandom(FAILING_RUNS, SEED);
    const { lost, duplicated, violations } = runs;
    expect(violations).toEqual([]);
    const outcome = 'every start succeeds; 0 violations of the guarantees';
    reportFault({ fault: 'disk error in any file operation', runs: FAILING_RUNS, outcome, lost, duplicated });
  },
);

test.runIf(env['DENDRO_CRASH_STATE'])('the crash state of DENDRO_CRASH_STATE', OPTIONS, async () => {
  const [directory = '', point, variant] = `${env['DENDRO_CRASH_STATE']}`.split(':');
  const recording = loadRecording(directory);
  const at = { point: Number(point), variant: Number(variant) };
  for (const [index, { operation, path }] of recording.operations.slice(0, at.point + 5).entries())
    if (index > at.point - 15) print(`${index === at.point ? '>' : ' '} ${index} ${operation.type} ${path}`);
  await visitCrashPoints(recording, [at], async reached => {
    const { problems } = await checkCrashState(recording, reached, join(work, 'state'), 2);
    expect(problems).toEqual({ lost: [], duplicated: [], other: [] });
  });
});

test.runIf(env['DENDRO_CRASH_FAIL'])('the failure of DENDRO_CRASH_FAIL', OPTIONS, async context => {
  const runs = new FailingRuns(work, requireShim(context));
  await runs.run(parseFailure(`${env['DENDRO_CRASH_FAIL']}`));
  expect(runs.violations).toEqual([]);
});
