// The crash simulator: records a workload, checks random crash states of it, and continues from one of them.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Random } from '../../src/demo/random.ts';
import { checkState } from './check-state.ts';
import {
  type CrashPoint,
  listCrashPoints,
  type Mutation,
  type ReachedCrashPoint,
  visitCrashPoints,
} from './crash-points.ts';
import { writeState } from './disk-model.ts';
import type { FileShim } from './file-shim.ts';
import { Ledger, type LedgerContent, type Problems, type StoredContent } from './ledger.ts';
import { type Recording, record, saveRecording } from './recording.ts';
import { ERASED_PROJECT } from './workload.ts';

export interface Findings {
  /** Crash states that were checked. All of them differ. */
  states: number;
  /** States in which the start failed with a line that names the file and what to do. */
  refused: number;
  lost: number;
  duplicated: number;
  /** Each with the crash point and how to reproduce it. */
  readonly violations: string[];
}

/** The first workload starts at this time, so that the same seed sends the same records. */
const NOTHING: LedgerContent = { clock: Date.UTC(2026, 10, 1) * 1000, batches: [], tokens: [] };
/** One in this many states is opened twice: the first start must leave a directory that the second can open. */
const RESTART_SHARE = 5;
const CONCURRENCY = 2;
const MAX_VIOLATIONS = 20;

export class Simulator {
  readonly findings: Findings = { states: 0, refused: 0, lost: 0, duplicated: 0, violations: [] };
  readonly #work: string;
  readonly #root: string;
  readonly #shim: FileShim;
  readonly #seed: number;
  readonly #random: Random;
  #ledger = NOTHING;

  /** `work` is an empty directory; the shim records the operations in its directory `root`. */
  constructor(work: string, shim: FileShim, seed: number) {
    this.#work = work;
    this.#root = join(work, 'root');
    this.#shim = shim;
    this.#seed = seed;
    this.#random = new Random(seed);
    mkdirSync(this.#root);
  }

  /** Records a workload with this many steps in each of its processes. */
  record(steps: number): Promise<Recording> {
    const seed = Math.floor(this.#random.next() * 2 ** 31);
    return record(this.#shim, this.#root, this.#ledger, { seed, steps });
  }

  /** Checks this many states. One of them is the start of the next recording, so that recovery itself is interrupted, too. */
  async explore(recording: Recording, states: number, mutation?: Mutation): Promise<void> {
    const chosen = sample(listCrashPoints(recording, mutation), states, this.#random);
    const next = chosen[Math.floor(this.#random.next() * chosen.length)];
    this.#ledger = NOTHING;
    emptyDirectory(this.#root);
    const running = new Set<Promise<void>>();
    const visit = async (reached: ReachedCrashPoint) => {
      if (this.findings.violations.length >= MAX_VIOLATIONS) return;
      const isNext = reached.point === next?.point && reached.variant === next.variant;
      if (isNext) writeState(recording.start.root, reached.state, this.#root);
      const check = this.#check(recording, reached).then(stored => {
        running.delete(check);
        if (!isNext) return;
        if (stored === undefined) return emptyDirectory(this.#root);
        const ledger = new Ledger(reached.ledger);
        ledger.settle(stored);
        this.#ledger = ledger.content;
      });
      running.add(check);
      if (running.size >= CONCURRENCY) await Promise.race(running);
    };
    await visitCrashPoints(recording, chosen, visit, mutation);
    await Promise.all(running);
  }

  /** Returns what is stored; undefined if the state violates an invariant or the program refuses to open it. */
  async #check(recording: Recording, reached: ReachedCrashPoint): Promise<StoredContent | undefined> {
    const number = ++this.findings.states;
    const directory = join(this.#work, `state-${number}`);
    const { contents, refusal, problems } = await checkCrashState(
      ...([recording, reached, directory] as const),
      number % RESTART_SHARE === 0 ? 2 : 1,
    );
    if (refusal !== undefined) this.findings.refused++;
    if (problems.lost.length > 0) this.findings.lost++;
    if (problems.duplicated.length > 0) this.findings.duplicated++;
    const all = Object.values(problems).flat();
    if (all.length > 0) this.#report(recording, reached, all.join('; '));
    return all.length > 0 ? undefined : contents[0];
  }

  #report(recording: Recording, { point, variant, mode }: ReachedCrashPoint, problem: string): void {
    const directory = join(tmpdir(), `dendro-crash-${this.#seed}-${recording.seed}`);
    saveRecording(directory, recording, readFileSync(`${this.#shim.env['SHIM_LOG']}`));
    this.findings.violations.push(`crash before operation ${point} (${mode}): ${problem}
    to reproduce: DENDRO_CRASH_STATE=${directory}:${point}:${variant} npm run test:crash`);
  }
}

/** Writes a state to a new directory, opens it, and deletes it. */
export async function checkCrashState(
  { start }: Recording,
  { state, ledger }: ReachedCrashPoint,
  directory: string,
  starts: number,
): Promise<{ contents: readonly StoredContent[]; refusal: string | undefined; problems: Problems }> {
  mkdirSync(directory);
  writeState(start.root, state, directory);
  const erasedText = new Ledger(ledger).isErased(ERASED_PROJECT) ? ERASED_PROJECT : undefined;
  const problems: Problems = { lost: [], duplicated: [], other: [] };
  try {
    const dataDirectory = join(directory, 'data');
    const result = await checkState({ dataDirectory, starts, clock: ledger.clock, erasedText });
    if ('error' in result) {
      if (!result.isClear) problems.other.push(`the start fails: ${result.error}`);
      return { contents: [], refusal: result.isClear ? result.error : undefined, problems };
    }
    for (const content of result.contents) {
      const { lost, duplicated, other } = new Ledger(ledger).compare(content);
      problems.lost.push(...lost);
      problems.duplicated.push(...duplicated);
      problems.other.push(...other);
    }
    return { contents: result.contents, refusal: undefined, problems };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function emptyDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
}

/** A random sample, in the original order. */
function sample(points: readonly CrashPoint[], count: number, random: Random): CrashPoint[] {
  const chosen: CrashPoint[] = [];
  for (const [index, point] of points.entries())
    if (random.next() * (points.length - index) < count - chosen.length) chosen.push(point);
  return chosen;
}
