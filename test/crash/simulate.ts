// The crash simulator: records a workload, explores its crash states, and continues from one of them, until the time is over.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Random } from '../../src/demo/random.ts';
import { checkWithProgram, writeEndpoint } from './check-program.ts';
import type { CheckResult } from './check-state.ts';
import { CheckerPool } from './checker-pool.ts';
import {
  type CrashPoint,
  listCrashPoints,
  type Mutation,
  type ReachedCrashPoint,
  visitCrashPoints,
} from './crash-points.ts';
import { writeState } from './disk-model.ts';
import { createFileShim, type FileShim } from './file-shim.ts';
import { Ledger, type LedgerContent, type StoredContent } from './ledger.ts';
import { type Recording, record, saveRecording } from './recording.ts';
import { ERASED_PROJECT } from './workload.ts';

export interface SimulationOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Checks this many states of one recording instead, however long that takes. */
  readonly states?: number;
  /** Steps of each process of the workload. */
  readonly steps?: number;
  readonly mutation?: Mutation;
  readonly print?: (line: string) => void;
}

export interface SimulationResult {
  readonly seed: number;
  /** Operations of the recorded workloads. */
  operations: number;
  /** Crash states that were checked. All of them differ. */
  states: number;
  /** Of these, with the real program. */
  programStates: number;
  /** States in which the start failed with a line that names the file and what to do. */
  refused: number;
  lost: number;
  duplicated: number;
  /** Each with the crash point and how to reproduce it. */
  readonly violations: string[];
}

/** The first workload starts at this time, so that the same seed sends the same records. */
const START_MICROS = Date.UTC(2026, 10, 1) * 1000;
const DEFAULT_STEPS = 12;
const SECONDS_PER_RECORDING = 120;
const MIN_EXPLORE_MS = 20_000;
/** One in this many states is opened with the real program. */
const PROGRAM_SHARE = 150;
/** One in this many states is opened twice: the first start must leave a directory that the second can open. */
const RESTART_SHARE = 5;
const MAX_VIOLATIONS = 20;

/** Returns undefined if there is no C compiler and none can be installed. */
export async function simulate(
  options: SimulationOptions,
  pool: CheckerPool,
): Promise<SimulationResult | undefined> {
  const work = mkdtempSync(join(workParent(), 'dendro-crash-'));
  const shim = createFileShim(join(work, 'root'));
  if (shim === undefined) return undefined;
  try {
    return await new Simulation(options, work, shim, pool).run();
  } finally {
    shim.remove();
    rmSync(work, { recursive: true, force: true });
  }
}

/** Memory, if possible: crash states are written and deleted by the thousand. */
export function workParent(): string {
  try {
    rmSync(mkdtempSync('/dev/shm/dendro-'), { recursive: true });
    return '/dev/shm';
  } catch {
    return tmpdir();
  }
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #work: string;
  readonly #root: string;
  readonly #shim: FileShim;
  readonly #pool: CheckerPool;
  readonly #random: Random;
  readonly #result: SimulationResult;
  #endsAt: number;
  #statesPerSecond = 15;
  #slots = 0;

  constructor(options: SimulationOptions, work: string, shim: FileShim, pool: CheckerPool) {
    this.#options = options;
    this.#work = work;
    this.#root = join(work, 'root');
    this.#shim = shim;
    this.#pool = pool;
    this.#random = new Random(options.seed);
    this.#endsAt = performance.now() + options.seconds * 1000;
    this.#result = {
      ...{
        seed: options.seed,
        operations: 0,
        states: 0,
        programStates: 0,
        refused: 0,
        lost: 0,
        duplicated: 0,
      },
      violations: [],
    };
    writeEndpoint(join(work, 'endpoints'));
  }

  async run(): Promise<SimulationResult> {
    mkdirSync(this.#root);
    let ledger: LedgerContent = { clock: START_MICROS, batches: [], tokens: [] };
    do {
      const seed = Math.floor(this.#random.next() * 2 ** 31);
      const steps = this.#options.steps ?? DEFAULT_STEPS;
      const recording = await record(this.#shim, this.#root, ledger, { seed, steps });
      this.#result.operations += recording.operations.length;
      ledger = await this.#explore(recording);
    } while (this.#options.states === undefined && !this.#isOver);
    return this.#result;
  }

  get #isOver(): boolean {
    const { states } = this.#options;
    const isTimeOver = states === undefined && performance.now() > this.#endsAt;
    return isTimeOver || this.#result.violations.length >= MAX_VIOLATIONS;
  }

  /** Checks states of a recording, then starts the next recording from one of them. Returns its ledger. */
  async #explore(recording: Recording): Promise<LedgerContent> {
    const startedAt = performance.now();
    const statesBefore = this.#result.states;
    const all = listCrashPoints(recording, this.#options.mutation);
    // On a slow machine, the first recording can take all of the time.
    if (statesBefore === 0) this.#endsAt = Math.max(this.#endsAt, startedAt + MIN_EXPLORE_MS);
    const secondsLeft = Math.max(1, (this.#endsAt - performance.now()) / 1000);
    const wanted = Math.min(secondsLeft, SECONDS_PER_RECORDING) * this.#statesPerSecond;
    const chosen = sample(all, this.#options.states ?? Math.ceil(wanted), this.#random);
    const next = chosen[Math.floor(this.#random.next() * chosen.length)];
    let ledger = recording.ledger;
    const running = new Set<Promise<void>>();
    const visit = async (reached: ReachedCrashPoint) => {
      if (this.#isOver) return;
      const isNext = reached.point === next?.point && reached.variant === next.variant;
      if (isNext) this.#replaceRoot(recording, reached);
      const check = this.#check(recording, reached).then(stored => {
        running.delete(check);
        if (!isNext) return;
        const settled = new Ledger(reached.ledger);
        if (stored !== undefined) settled.settle(stored);
        ledger = stored === undefined ? recording.ledger : settled.content;
      });
      running.add(check);
      if (running.size > 2 * this.#pool.size) await Promise.race(running);
    };
    await visitCrashPoints(recording, chosen, visit, this.#options.mutation);
    await Promise.all(running);
    const checked = this.#result.states - statesBefore;
    const seconds = (performance.now() - startedAt) / 1000;
    this.#statesPerSecond = checked / seconds;
    this.#options.print?.(
      `recording ${recording.seed}: ${recording.operations.length} operations, ${checked} of ${all.length} states, ${(checked / seconds).toFixed(1)} per second`,
    );
    if (ledger === recording.ledger) this.#emptyRoot();
    return ledger === recording.ledger ? { clock: START_MICROS, batches: [], tokens: [] } : ledger;
  }

  #emptyRoot(): void {
    rmSync(this.#root, { recursive: true, force: true });
    mkdirSync(this.#root);
  }

  #replaceRoot({ start }: Recording, { state }: ReachedCrashPoint): void {
    this.#emptyRoot();
    writeState(start.root, state, this.#root);
  }

  /** Returns what is stored; undefined if the state violates an invariant or the program refuses to open it. */
  async #check(recording: Recording, reached: ReachedCrashPoint): Promise<StoredContent | undefined> {
    const slot = join(this.#work, `state-${++this.#slots}`);
    mkdirSync(slot);
    writeState(recording.start.root, reached.state, slot);
    const number = ++this.#result.states;
    try {
      const result = await this.#open(slot, reached.ledger, number);
      return this.#judge(recording, reached, result);
    } finally {
      rmSync(slot, { recursive: true, force: true });
    }
  }

  #open(slot: string, ledger: LedgerContent, number: number): Promise<CheckResult> {
    const dataDirectory = join(slot, 'data');
    const erasedText = erasedTextOf(ledger);
    if (number % PROGRAM_SHARE === 0) {
      this.#result.programStates++;
      const names = ledger.tokens.map(([name]) => name);
      return checkWithProgram(dataDirectory, join(this.#work, 'endpoints'), names, erasedText);
    }
    const starts = number % RESTART_SHARE === 0 ? 2 : 1;
    return this.#pool.check({ dataDirectory, starts, clock: ledger.clock, erasedText });
  }

  #judge(recording: Recording, reached: ReachedCrashPoint, result: CheckResult): StoredContent | undefined {
    if ('error' in result) {
      if (result.isClear) this.#result.refused++;
      else this.#report(recording, reached, `the start fails: ${result.error}`);
      return undefined;
    }
    for (const content of result.contents) {
      const { lost, duplicated, other } = new Ledger(reached.ledger).compare(content);
      if (lost.length > 0) this.#result.lost++;
      if (duplicated.length > 0) this.#result.duplicated++;
      const problems = [...lost, ...duplicated, ...other];
      if (problems.length === 0) continue;
      this.#report(recording, reached, problems.join('; '));
      return undefined;
    }
    return result.contents[0];
  }

  #report(recording: Recording, { point, variant, mode }: ReachedCrashPoint, problem: string): void {
    const directory = join(tmpdir(), `dendro-crash-${this.#options.seed}-${recording.seed}`);
    saveRecording(directory, recording, readFileSync(`${this.#shim.env['SHIM_LOG']}`));
    const violation = `crash before operation ${point} (${mode}): ${problem}
    to reproduce: npm run test:crash -- --replay ${directory} --point ${point} --variant ${variant}`;
    this.#result.violations.push(violation);
    this.#options.print?.(violation);
  }
}

function erasedTextOf(ledger: LedgerContent): string | undefined {
  return new Ledger(ledger).isErased(ERASED_PROJECT) ? ERASED_PROJECT : undefined;
}

/** A random sample, in the original order. */
function sample(points: readonly CrashPoint[], count: number, random: Random): CrashPoint[] {
  const chosen: CrashPoint[] = [];
  for (const [index, point] of points.entries())
    if (random.next() * (points.length - index) < count - chosen.length) chosen.push(point);
  return chosen;
}

/** Checks one crash state of a saved recording. Returns what is wrong, and keeps the state in a directory. */
export async function replayCrash(
  recording: Recording,
  at: CrashPoint,
): Promise<{ readonly directory: string; readonly problems: readonly string[] }> {
  const directory = mkdtempSync(join(tmpdir(), 'dendro-crash-state-'));
  const copy = `${directory}-opened`;
  const pool = await CheckerPool.start(1);
  const problems: string[] = [];
  try {
    await visitCrashPoints(recording, [at], async ({ state, ledger }) => {
      writeState(recording.start.root, state, directory);
      cpSync(directory, copy, { recursive: true });
      const result = await pool.check({
        ...{ dataDirectory: join(copy, 'data'), starts: 2, clock: ledger.clock },
        erasedText: erasedTextOf(ledger),
      });
      if ('error' in result) problems.push(result.error);
      else
        for (const content of result.contents) {
          const { lost, duplicated, other } = new Ledger(ledger).compare(content);
          problems.push(...lost, ...duplicated, ...other);
        }
    });
    return { directory, problems };
  } finally {
    pool.close();
    rmSync(copy, { recursive: true, force: true });
  }
}
