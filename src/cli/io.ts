// The surroundings of a command: its environment variables, streams and signals. In the program they are those of the process;
// a test passes its own, and runs commands without starting a process.
import type { EventEmitter } from 'node:events';
import type { Readable, Writable } from 'node:stream';

export type Output = Writable & { readonly isTTY?: boolean | undefined };

export interface Io {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  readonly stdout: Output;
  readonly stderr: Output;
  /** Emits SIGTERM, SIGINT and SIGHUP. */
  readonly signals: Pick<EventEmitter, 'on' | 'once' | 'off'>;
  /** Ends the process at once with this exit code. */
  exit(code: number): void;
  /** Ends the process even if a native thread does not end. */
  kill(): void;
}
