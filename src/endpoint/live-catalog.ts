// The endpoints that a running server serves. They are loaded again when a custom endpoint folder has changed, or on SIGHUP. If
// the new set has a problem, the server keeps the last valid one. If a remote store is unreachable or too slow when the server
// starts, the preflight is retried until it passes.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { DendroError } from '../domain/errors.ts';
import type { Observe } from '../observe/event.ts';
import type { Store } from '../store/store.ts';
import { readFileVersion } from '../system/file-version.ts';
import { Mutex } from '../system/mutex.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import { type Catalog, checkCatalog, createCatalog, type Endpoint } from './catalog.ts';
import { runPreflight } from './preflight.ts';

export interface LiveCatalogOptions {
  /** Reads one endpoint folder at each step. Throws if one is broken. */
  readonly load: () => Iterable<Endpoint>;
  /** The directory of the custom endpoints, which is watched; undefined: there is none. */
  readonly watched: string | undefined;
  readonly timer: Timer;
  readonly observe: Observe;
}

/** What a reload needs besides the files: the store, which validates the SQL, and a callback for the new set. */
export interface ReloadDependencies {
  readonly store: Store;
  /** Called with the new set, and with the ids of the endpoints whose results may differ: changed, added and removed ones. */
  readonly onReload: (catalog: Catalog, changedIds: ReadonlySet<string>) => void;
}

/**
 * A change is loaded when the files have not changed between two checks, so that an editor can finish writing them. Also the pause
 * between two attempts of the preflight.
 */
const CHECK_EVERY_MS = 500;

/** A value of #loadedVersion that differs from everything that `readVersions` yields, so that the next check loads the files. */
const UNKNOWN = 'unknown';

export class LiveCatalog implements Catalog {
  readonly #options: LiveCatalogOptions;
  readonly #reloads = new Mutex();
  readonly #closing = new AbortController();
  #current: Catalog;
  #reloadDependencies: ReloadDependencies | undefined;
  #job: RepeatingJob | undefined;
  /** The state of the files when the constructor or a check last loaded them, successfully or not; or UNKNOWN. */
  #loadedVersion: string;
  /** The state of the files at the last check. */
  #seenVersion: string;
  #hasPassed = false;

  constructor(options: LiveCatalogOptions) {
    this.#options = options;
    // Before the load, so that no later change is missed.
    this.#loadedVersion = this.#seenVersion = [...this.#readVersions()].join();
    this.#current = createCatalog([...options.load()]);
  }

  get endpoints(): readonly Endpoint[] {
    return this.#current.endpoints;
  }

  find(idOrName: string): Endpoint | undefined {
    return this.#current.find(idOrName);
  }

  /** Whether the preflight has passed. */
  get hasPassed(): boolean {
    return this.#hasPassed;
  }

  /** Runs the preflight. Throws for a problem that the operator has to fix. If the store is unreachable or too slow, `start` retries. */
  async check(store: Store): Promise<void> {
    try {
      await runPreflight(this, store);
      this.#hasPassed = true;
    } catch (error) {
      if (!isTransient(error)) throw error;
      this.#options.observe({ type: 'store_unavailable', error });
    }
  }

  /** Starts to watch the files, and to retry the preflight if it has not passed. */
  start(reloadDependencies: ReloadDependencies): void {
    this.#reloadDependencies = reloadDependencies;
    const { watched, timer } = this.#options;
    if (watched === undefined && this.#hasPassed) return;
    this.#job = every(timer, CHECK_EVERY_MS, async () => {
      if (!this.#hasPassed) await this.#retry(reloadDependencies.store);
      await this.#reloadIfChanged();
    });
  }

  /**
   * Loads the endpoint folders again. Reports a problem as an event, and keeps the current endpoints. Does nothing before `start`.
   */
  reload(): Promise<void> {
    return this.#reloads.run(async () => {
      if (this.#reloadDependencies !== undefined) await this.#load(this.#reloadDependencies);
    });
  }

  /** Cancels a running reload: for thousands of endpoints, it takes longer than a stop may. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#job?.stop();
    await this.#reloads.idle();
  }

  async #retry(store: Store): Promise<void> {
    const { observe } = this.#options;
    try {
      await runPreflight(this, store);
      this.#hasPassed = true;
      observe({ type: 'store_available' });
    } catch (error) {
      observe({ type: 'store_unavailable', error });
    }
  }

  #readVersions(): Iterable<string> {
    const { watched } = this.#options;
    return watched === undefined ? [] : readVersions(watched);
  }

  async #reloadIfChanged(): Promise<void> {
    const version = (await this.#collect(this.#readVersions())).join();
    const isStable = version === this.#seenVersion;
    this.#seenVersion = version;
    if (!isStable || version === this.#loadedVersion) return;
    this.#loadedVersion = version;
    await this.reload();
  }

  async #load({ store, onReload }: ReloadDependencies): Promise<void> {
    const { load, observe } = this.#options;
    const { signal } = this.#closing;
    try {
      const loaded = createCatalog(await this.#collect(load()));
      const changedIds = new Set((await this.#collect(findChanges(this.#current, loaded))).flat());
      await checkCatalog(loaded, store, signal); // throws if the steps before were not completed
      this.#current = loaded;
      onReload(loaded, changedIds);
      observe({ type: 'endpoints_reloaded', count: loaded.endpoints.length, changed: changedIds.size });
    } catch (error) {
      if (signal.aborted) return;
      // An unreachable store says nothing about the files, so the next check loads them again.
      if (error instanceof DendroError && error.code === 'unavailable') this.#loadedVersion = UNKNOWN;
      observe({ type: 'endpoints_rejected', error });
    }
  }

  /**
   * Requests are served between two steps: for thousands of endpoint folders, all steps together take seconds. Not completed if the
   * catalog is closed meanwhile.
   */
  async #collect<T>(steps: Iterable<T>): Promise<T[]> {
    const collected: T[] = [];
    for (const step of steps) {
      collected.push(step);
      await setImmediate();
      if (this.#closing.signal.aborted) break;
    }
    return collected;
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof DendroError && (error.code === 'unavailable' || error.code === 'query_timeout');
}

/** At each step, yields the id of an endpoint if it is not the same in both sets. */
function* findChanges(before: Catalog, after: Catalog): Generator<string[]> {
  for (const { definition } of [...before.endpoints, ...after.endpoints]) {
    const { id } = definition;
    yield isDeepStrictEqual(before.find(id), after.find(id)) ? [] : [id];
  }
}

/**
 * Yields a text for each endpoint folder that changes whenever a file of the folder changes. Follows symbolic links: an update of a
 * mounted configuration, such as a Kubernetes ConfigMap, replaces a link and not the files.
 */
function* readVersions(directory: string): Generator<string> {
  for (const name of listNames(directory).filter(name => !name.startsWith('.'))) {
    const folder = join(directory, name);
    yield listNames(folder)
      .map(file => `${join(folder, file)} ${readFileVersion(join(folder, file))}`)
      .join();
  }
}

/** An unreadable directory has no names; loading it reports the problem. */
function listNames(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}
