// Checks whether DuckDB accepts a regular expression. Keeps the results in an LRU cache: DuckDB's verdict never changes.
import type { QueryOptions } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** A pattern is at most as long as a URL, so this is a small amount of memory. */
const MAX_CACHED = 1_000;

export class PatternCheck {
  readonly #pool: ConnectionPool;
  /** Least recently used first. */
  readonly #problems = new Map<string, string | undefined>();

  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  /** Returns what is wrong with the pattern, in DuckDB's words, or undefined. */
  async findProblem(pattern: string, options?: QueryOptions): Promise<string | undefined> {
    const isCached = this.#problems.has(pattern);
    const problem = isCached ? this.#problems.get(pattern) : await this.#query(pattern, options);
    this.#problems.delete(pattern);
    this.#problems.set(pattern, problem);
    for (const oldest of this.#problems.keys()) {
      if (this.#problems.size <= MAX_CACHED) break;
      this.#problems.delete(oldest);
    }
    return problem;
  }

  async #query(pattern: string, options?: QueryOptions): Promise<string | undefined> {
    const { result } = await this.#pool.run(async queryConnection => {
      const statement = await queryConnection.prepare("select regexp_matches('', $pattern)");
      statement.bind({ pattern });
      try {
        await statement.run();
        return undefined;
      } catch (error) {
        const problem = /^Invalid Input Error: (.*)/.exec((error as Error).message)?.[1];
        if (problem === undefined) throw error;
        return problem;
      }
    }, options);
    return result;
  }
}
