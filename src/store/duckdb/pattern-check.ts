// Whether DuckDB takes a regular expression. What it said once it says again, so it is asked once.
import type { QueryOptions } from '../store.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** Patterns are as short as a URL's parameter; the one that was asked longest ago goes first. */
const MOST_KNOWN = 1_000;

export class PatternCheck {
  readonly #readers: ConnectionPool;
  readonly #faults = new Map<string, string | undefined>();

  constructor(readers: ConnectionPool) {
    this.#readers = readers;
  }

  async findFault(pattern: string, call?: QueryOptions): Promise<string | undefined> {
    const fault = this.#faults.has(pattern) ? this.#faults.get(pattern) : await this.#ask(pattern, call);
    this.#faults.delete(pattern);
    this.#faults.set(pattern, fault);
    for (const oldest of this.#faults.keys()) {
      if (this.#faults.size <= MOST_KNOWN) break;
      this.#faults.delete(oldest);
    }
    return fault;
  }

  async #ask(pattern: string, call?: QueryOptions): Promise<string | undefined> {
    const { result } = await this.#readers.run(async reader => {
      const statement = await reader.prepare("select regexp_matches('', $pattern)");
      statement.bind({ pattern });
      try {
        await statement.run();
        return undefined;
      } catch (error) {
        const fault = /^Invalid Input Error: (.*)/.exec((error as Error).message)?.[1];
        if (fault === undefined) throw error;
        return fault;
      }
    }, call);
    return result;
  }
}
