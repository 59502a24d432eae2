// The entry point: runs the program with the streams and signals of this process.
import type { Io } from './cli/io.ts';
import { reportError, run } from './cli/program.ts';

/** Every file that the program creates is private, also those that DuckDB creates. */
const UMASK = 0o077;

const io: Io = {
  env: process.env,
  get stdin() {
    return process.stdin; // a command that does not read it does not open it
  },
  stdout: process.stdout,
  stderr: process.stderr,
  signals: process,
  exit: code => process.exit(code),
  kill: () => void process.kill(process.pid, 'SIGKILL'),
};

/** The program that reads the output has exited, such as `head`. Standard output can be a pipe or a socket. */
const READER_IS_GONE = ['EPIPE', 'ECONNRESET'];

/**
 * Without a handler, an output that cannot be written would end the process with a stack trace. With it, the command continues
 * and loses only its output: `serve` keeps serving, `ingest` loads its remaining files.
 */
function handleOutputErrors(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (READER_IS_GONE.includes(error.code ?? '')) return;
    reportError(error, io);
    process.exitCode = 1;
  });
  process.stderr.on('error', () => {}); // there is no other place to report it
}

process.umask(UMASK);
handleOutputErrors();
process.exitCode = (await run(process.argv.slice(2), io)) || process.exitCode;
