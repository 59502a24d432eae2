// Opens a data directory with the classes of the server, in this process, and returns what is stored in it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../src/domain/errors.ts';
import { Intake } from '../../src/intake/intake.ts';
import { createStoreCallbacks, Quarantine } from '../../src/intake/quarantine.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SavedQuery } from '../../src/store/store.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { readTokenFile } from '../../src/token/token-file.ts';
import { testStoreOptions } from '../support/config.ts';
import { STORED_BATCHES_SQL, type StoredContent } from './ledger.ts';
import { RETENTION_DAYS } from './workload.ts';

export interface CheckRequest {
  readonly dataDirectory: string;
  /** Opens the directory this many times, each time after a clean stop. */
  readonly starts: number;
  /** Unix microseconds. */
  readonly clock: number;
  /** No file may contain it. */
  readonly erasedText?: string | undefined;
}

/** `error`: a start failed. `isClear`: the error names the file and what to do. */
export type CheckResult =
  | { readonly contents: readonly StoredContent[] }
  | { readonly error: string; readonly isClear: boolean };

/** A start that takes longer has stopped making progress. */
const STUCK_MS = 60_000;

export function checkState(request: CheckRequest): Promise<CheckResult> {
  const stuck = sleep(STUCK_MS, undefined, { ref: false }).then(() => ({
    ...{ error: `the start did not finish within ${STUCK_MS / 1000} s`, isClear: false },
  }));
  return Promise.race([openAndRead(request), stuck]);
}

async function openAndRead(request: CheckRequest): Promise<CheckResult> {
  const { dataDirectory, starts, clock, erasedText } = request;
  const contents: StoredContent[] = [];
  try {
    for (let start = 0; start < starts && existsSync(dataDirectory); start++) {
      const stored = await readContent(dataDirectory, BigInt(clock));
      contents.push({ ...stored, fileProblems: findFileProblems(dataDirectory, erasedText) });
    }
    return { contents: contents.length > 0 ? contents : [{ batches: [], tokens: [], fileProblems: [] }] };
  } catch (error) {
    const { message, stack } = error as Error;
    const isClear = error instanceof OperatorError && namesFileAndRemedy(message, dataDirectory);
    return { error: error instanceof OperatorError ? message : `${stack}`, isClear };
  }
}

/** An error line of the program has the form "what is wrong, with the file; what to do". */
function namesFileAndRemedy(message: string, dataDirectory: string): boolean {
  const path = new RegExp(`${dataDirectory}/[^\\s:;,]+`).exec(message)?.[0];
  return path !== undefined && existsSync(path) && /; \w+/.test(message);
}

const QUERY: SavedQuery = {
  sql: STORED_BATCHES_SQL,
  columns: ['number', 'records', 'distinct', 'intact'].map(name => ({ name, type: 'integer' })),
  maxRows: 100_000,
};

async function readContent(
  dataDirectory: string,
  clockMicros: bigint,
): Promise<Omit<StoredContent, 'fileProblems'>> {
  const clock = () => clockMicros;
  const observe = () => {};
  const quarantine = new Quarantine(dataDirectory, observe);
  const options = { ...testStoreOptions(dataDirectory), threads: 1, queryConcurrency: 1 };
  const store = await openStore(options, createStoreCallbacks(quarantine, clock, observe));
  try {
    const intake = await Intake.open(
      { dataDirectory, retentionDays: RETENTION_DAYS, queueBytes: 2 ** 26, idempotencyBytes: 2 ** 20 },
      {
        ...{ store, quarantine, clock, timer: systemTimer, idempotencyTimer: systemTimer, observe },
        bodyParser: { parse: () => Promise.reject(new Error('not used')), close: async () => {} },
      },
    );
    try {
      const { rows } = await store.query(QUERY, {});
      const batches = rows.map(row => {
        const [number = 0, records = 0, distinct = 0, intact = 0] = row.map(Number);
        return { number, records, distinct, intact };
      });
      const tokens = readTokenFile(join(dataDirectory, 'tokens.json')).map(({ name }) => name);
      return { batches, tokens };
    } finally {
      await intake.close();
      await quarantine.idle();
    }
  } finally {
    await store.close();
  }
}

/** Not the `.new` of writeFileDurably, which the next write of the same file replaces. */
const TEMPORARY = /\.tmp(\.wal)?$/;

/**
 * Returns what is wrong: a temporary file, a part that the manifest does not name, a part that was set aside, or a file with
 * `erasedText`.
 */
function findFileProblems(dataDirectory: string, erasedText?: string): string[] {
  const files = readdirSync(dataDirectory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
  const named = listNamedParts(dataDirectory);
  const isLeft = (file: string) =>
    TEMPORARY.test(file) || (file.includes('/parts/') && !named.has(basename(file)));
  const left = files.filter(isLeft).map(file => `${basename(file)} is left`);
  // The next server resumes an erasure whose end was not durable. erase.json.new is of an erasure that was not acknowledged.
  if (erasedText === undefined || existsSync(join(dataDirectory, 'erase.json'))) return left;
  const withText = files.filter(
    file => basename(file) !== 'erase.json.new' && readFileSync(file).includes(erasedText),
  );
  return [...left, ...withText.map(file => `${basename(file)} has text of the erased project`)];
}

function listNamedParts(dataDirectory: string): ReadonlySet<string> {
  const file = join(dataDirectory, 'manifest.json');
  if (!existsSync(file)) return new Set();
  const { parts } = JSON.parse(readFileSync(file, 'utf8')) as { parts: { file: string }[] };
  return new Set(parts.map(part => part.file));
}
