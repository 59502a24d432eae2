// Enumerates the crash states of a recording: for every point between two operations, several choices of what survives.
import { createHash } from 'node:crypto';
import { Random } from '../../src/demo/random.ts';
import { CRASH_MODES, type CrashMode, chooseCrashState } from './crash-state.ts';
import { type CrashState, DiskModel } from './disk-model.ts';
import { Ledger, type LedgerContent, type Marker } from './ledger.ts';
import type { LoggedOperation } from './operation-log.ts';
import type { Recording } from './recording.ts';

/** A crash before the operation number `point`, with the choice number `variant`. */
export interface CrashPoint {
  readonly point: number;
  readonly variant: number;
}

export interface ReachedCrashPoint extends CrashPoint {
  readonly mode: CrashMode;
  readonly state: CrashState;
  readonly ledger: LedgerContent;
}

/** Makes the simulator fail: these operations are treated as if the program did not call them. */
export type Mutation = 'no syncs of the spool' | 'no syncs of parts' | 'no syncs of directories';

/** Without any entry of a directory, the program finds no data directory. So the oldest ones survive. */
const LOSING_MODES: Readonly<Record<Mutation, CrashMode>> = {
  'no syncs of the spool': 'lost',
  'no syncs of parts': 'lost',
  'no syncs of directories': 'journal',
};

const VARIANTS: readonly CrashMode[] = [...CRASH_MODES, 'journal', 'any', 'any'];

/** Files that every start deletes or overwrites: a crash before an operation on one of them is not a state of its own. */
const TEMPORARY =
  /\/(staging|tmp)(\/|$)|\.duckdb\.tmp(\.wal)?$|\/dendro\.pid|\.lock(\.|$)|\/write-test\.|\/startup-test/;

/** All crash points with different states. With a mutation, only those that most likely lose what it does not sync. */
export function listCrashPoints(recording: Recording, mutation?: Mutation): CrashPoint[] {
  const seen = new Set<string>();
  const found: CrashPoint[] = [];
  for (const { point, model } of replaySteps(recording, mutation))
    for (const [variant, mode] of VARIANTS.entries()) {
      if (mutation !== undefined && mode !== LOSING_MODES[mutation]) continue;
      const { key } = chooseVariant(recording, model, point, variant);
      const digest = createHash('md5').update(key).digest('base64');
      if (seen.has(digest)) continue;
      seen.add(digest);
      found.push({ point, variant });
    }
  return found;
}

/** Builds the states of these crash points, which are in order, and passes each to `visit`. */
export async function visitCrashPoints(
  recording: Recording,
  points: readonly CrashPoint[],
  visit: (reached: ReachedCrashPoint) => Promise<void>,
  mutation?: Mutation,
): Promise<void> {
  const wanted = new Set(points.map(({ point, variant }) => `${point} ${variant}`));
  for (const step of replaySteps(recording, mutation))
    for (const [variant, mode] of VARIANTS.entries())
      if (wanted.has(`${step.point} ${variant}`))
        await visit({
          ...{ point: step.point, variant, mode, ledger: step.ledger.content },
          state: chooseVariant(recording, step.model, step.point, variant),
        });
}

/** The same choice each time: the random numbers depend only on the seed and the crash point. */
function chooseVariant({ seed }: Recording, model: DiskModel, point: number, variant: number): CrashState {
  const mode = VARIANTS[variant] ?? 'any';
  return chooseCrashState(model, mode, new Random(seed + point * 1_000_003 + variant * 7919));
}

interface Step {
  readonly point: number;
  readonly model: DiskModel;
  readonly ledger: Ledger;
}

/** Stops before each operation that changes a file, and at the end. */
function* replaySteps(recording: Recording, mutation: Mutation | undefined): Generator<Step> {
  const model = new DiskModel(recording.start);
  const ledger = new Ledger(recording.ledger);
  const { operations } = recording;
  for (const [point, logged] of operations.entries()) {
    const { operation, error } = logged;
    if (error !== 0 || isDropped(logged, mutation)) continue;
    if (operation.type === 'marker') {
      ledger.apply(JSON.parse(operation.text) as Marker);
      continue;
    }
    if (!isTemporary(logged)) yield { point, model, ledger };
    model.apply(operation);
  }
  yield { point: operations.length, model, ledger };
}

function isTemporary({ operation, path }: LoggedOperation): boolean {
  return TEMPORARY.test(path) && operation.type !== 'rename';
}

function isDropped({ operation, path }: LoggedOperation, mutation: Mutation | undefined): boolean {
  return (
    (operation.type === 'sync' && path.endsWith('.spool') && mutation === 'no syncs of the spool') ||
    (operation.type === 'sync' && path.includes('/parts/') && mutation === 'no syncs of parts') ||
    (operation.type === 'sync directory' && mutation === 'no syncs of directories')
  );
}
