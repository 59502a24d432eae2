// Erases the records of a project from everything that this server keeps: spool, store, outbox, quarantine, cache and alerts. First saves
// the scope in erase.json, where it stays until all steps are done. Every step can be repeated, so a run that a crash interrupted
// starts again from the first step: when the server starts, or when the command is repeated.
import { existsSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DendroError, OperatorError } from '../domain/errors.ts';
import { isLineOfProject } from '../logs/quarantine-line.ts';
import type { Observe } from '../observe/event.ts';
import type { EraseScope, Store } from '../store/store.ts';
import { syncDirectory, writeFileDurably } from '../system/files.ts';
import { Mutex } from '../system/mutex.ts';
import type { Intake } from './intake.ts';
import type { Quarantine } from './quarantine.ts';
import { spoolDirectoryIn } from './spool.ts';

export interface EraseReport {
  /** How many records were erased from the store. */
  readonly records: number;
  /** How many records were erased from the quarantine files. */
  readonly quarantined: number;
  /**
   * Files with damaged bytes of the spool, parts that were set aside, and parts that an older manifest did not name. They may
   * contain records of any project, and are not changed.
   */
  readonly damagedFiles: number;
}

export interface EraseStatus {
  readonly scope: EraseScope;
  readonly state: 'running' | 'done' | 'failed';
  readonly report?: EraseReport;
}

export interface ErasureDependencies {
  readonly dataDirectory: string;
  readonly intake: Pick<Intake, 'prepareErasure'>;
  readonly store: Pick<Store, 'eraseProject'>;
  readonly quarantine: Pick<Quarantine, 'remove'>;
  /** Removes what other modules know about the records: cached results, instances of alerts. */
  readonly eraseElsewhere: (scope: EraseScope) => Promise<void>;
  readonly observe: Observe;
}

/** At most one erasure runs at a time. */
export class Erasure {
  readonly #dependencies: ErasureDependencies;
  readonly #file: string;
  /** Held while erase.json is changed. */
  readonly #fileMutex = new Mutex();
  #status: EraseStatus | undefined;
  #isClosed = false;
  /** Whether `start` was called again for the running erasure. */
  #isRequestedAgain = false;

  private constructor(dependencies: ErasureDependencies) {
    this.#dependencies = dependencies;
    this.#file = join(dependencies.dataDirectory, 'erase.json');
  }

  /** If an earlier process left an unfinished erasure, it counts as running from now on. The caller must call `resume`. */
  static async open(dependencies: ErasureDependencies): Promise<Erasure> {
    const erasure = new Erasure(dependencies);
    const [scope] = await erasure.#readUnfinished();
    if (scope !== undefined) erasure.#status = { scope, state: 'running' };
    return erasure;
  }

  /** The current erasure, or the last one since the server started. */
  get status(): EraseStatus | undefined {
    return this.#status;
  }

  /**
   * Starts in the background. Resolves when the scope is saved. If the same erasure is running already, it is repeated before it
   * counts as done: it may have missed records that were acknowledged since it started.
   */
  async start(scope: EraseScope): Promise<void> {
    const isRunning = this.#status?.state === 'running';
    if (isRunning && !isSame(this.#status?.scope, scope))
      throw new DendroError('unavailable', 'another erasure is running; retry later', {
        retryAfterSeconds: 5,
      });
    if (isRunning) this.#isRequestedAgain = true;
    else this.#status = { scope, state: 'running' };
    try {
      await this.#save(scope); // even if it is running: the run may have just removed the scope
    } catch (error) {
      if (!isRunning) this.#status = { scope, state: 'failed' };
      throw toUnavailable(error);
    }
    // The run that would have repeated the erasure may have failed meanwhile.
    if (!isRunning || this.status?.state === 'failed') void this.#run(scope).catch(() => {}); // reported as an event
  }

  /** Finishes the erasures that an earlier process did not finish. If some fail, tries the others, then throws the first error. */
  async resume(): Promise<void> {
    const errors: unknown[] = [];
    for (const scope of await this.#readUnfinished())
      if (!this.#isClosed) await this.#run(scope).catch(error => errors.push(error));
    if (errors.length > 0) throw errors[0];
  }

  /**
   * Failures are not reported from now on: an erasure that is running fails when the intake and the store are closed. The next
   * start repeats it from the first step.
   */
  close(): void {
    this.#isClosed = true;
  }

  async #run(scope: EraseScope): Promise<EraseReport> {
    this.#status = { scope, state: 'running' };
    try {
      let report: EraseReport = { records: 0, quarantined: 0, damagedFiles: 0 };
      do {
        this.#isRequestedAgain = false;
        const { records, quarantined, damagedFiles } = await this.#erase(scope);
        report = {
          records: report.records + records,
          quarantined: report.quarantined + quarantined,
          damagedFiles,
        };
        if (!this.#isRequestedAgain) await this.#forget(scope);
      } while (this.#isRequestedAgain);
      this.#status = { scope, state: 'done', report };
      const { records, quarantined } = report;
      this.#dependencies.observe({ type: 'project_erased', records, quarantined });
      return report;
    } catch (error) {
      this.#status = { scope, state: 'failed' };
      if (!this.#isClosed) this.#dependencies.observe({ type: 'erase_failed', error });
      throw error;
    }
  }

  async #erase(scope: EraseScope): Promise<EraseReport> {
    const { dataDirectory, intake, store, quarantine, eraseElsewhere } = this.#dependencies;
    await intake.prepareErasure(scope);
    const records = await store.eraseProject(scope);
    // After the drain, because records that the store rejects during the drain go to the quarantine.
    const quarantined = await quarantine.remove(line =>
      isLineOfProject(line, scope.project, scope.beforeMicros),
    );
    await eraseElsewhere(scope);
    return { records, quarantined, damagedFiles: await countDamagedFiles(dataDirectory) };
  }

  #save(scope: EraseScope): Promise<void> {
    return this.#fileMutex.run(async () => {
      const unfinished = (await this.#readUnfinished()).filter(other => !isSame(other, scope));
      await this.#write([...unfinished, scope]);
    });
  }

  #forget(scope: EraseScope): Promise<void> {
    return this.#fileMutex.run(async () => {
      await this.#write((await this.#readUnfinished()).filter(other => !isSame(other, scope)));
    });
  }

  async #readUnfinished(): Promise<EraseScope[]> {
    if (!existsSync(this.#file)) return [];
    try {
      const scopes = JSON.parse(await readFile(this.#file, 'utf8')) as DiskScope[];
      return scopes.map(fromDisk);
    } catch (error) {
      throw new OperatorError(
        `cannot read ${this.#file}: ${(error as Error).message}; delete it, then run dendro erase again for every project whose erasure may be unfinished`,
      );
    }
  }

  async #write(scopes: readonly EraseScope[]): Promise<void> {
    const { dataDirectory } = this.#dependencies;
    if (scopes.length > 0) return writeFileDurably(this.#file, JSON.stringify(scopes.map(toDisk)));
    await rm(this.#file, { force: true });
    await syncDirectory(dataDirectory);
  }
}

/** The names of parts that the embedded store has set aside or renamed. */
const SET_ASIDE_FILE = /\.duckdb\.(damaged|unnamed)$/;

/** An element of erase.json. The names are part of the on-disk format. */
interface DiskScope {
  readonly project: string;
  readonly before_micros?: string;
}

function toDisk({ project, beforeMicros }: EraseScope): DiskScope {
  return { project, ...(beforeMicros === undefined ? {} : { before_micros: String(beforeMicros) }) };
}

function fromDisk({ project, before_micros }: DiskScope): EraseScope {
  return { project, ...(before_micros === undefined ? {} : { beforeMicros: BigInt(before_micros) }) };
}

function isSame(one: EraseScope | undefined, other: EraseScope): boolean {
  return one?.project === other.project && one.beforeMicros === other.beforeMicros;
}

function toUnavailable(error: unknown): unknown {
  // Only errors of the file system have `syscall`. An erase.json that cannot be parsed needs the operator, not a retry.
  if ((error as NodeJS.ErrnoException).syscall === undefined) return error;
  const message = 'writing to the disk failed; the request was not accepted, retry later';
  return new DendroError('unavailable', message, { retryAfterSeconds: 5, cause: error });
}

async function countDamagedFiles(dataDirectory: string): Promise<number> {
  const list = async (directory: string) => (existsSync(directory) ? readdir(directory) : []);
  const ofSpool = await list(join(spoolDirectoryIn(dataDirectory), 'damaged'));
  const ofStore = (await list(join(dataDirectory, 'parts'))).filter(name => SET_ASIDE_FILE.test(name));
  return ofSpool.length + ofStore.length;
}
